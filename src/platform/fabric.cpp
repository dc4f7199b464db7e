// Reads fabric ports and error counters from sysfs. The names of the counters come from
// sysfs-class-infiniband and sysfs-class-net-statistics of the kernel's documentation, and from the
// mlx5 driver's hw_counters.
#include "platform/fabric.hpp"

#include <algorithm>
#include <array>

#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr std::array kOfInterfaces{"rx_errors",      "tx_errors",        "rx_dropped",
                                   "tx_dropped",     "rx_crc_errors",    "rx_missed_errors",
                                   "rx_fifo_errors", "tx_carrier_errors"};
constexpr std::array kOfPorts{"symbol_error",
                              "link_error_recovery",
                              "link_downed",
                              "port_rcv_errors",
                              "port_rcv_remote_physical_errors",
                              "port_rcv_switch_relay_errors",
                              "port_rcv_constraint_errors",
                              "port_xmit_discards",
                              "port_xmit_constraint_errors",
                              "local_link_integrity_errors",
                              "excessive_buffer_overrun_errors",
                              "VL15_dropped"};
constexpr std::array kOfHardware{"out_of_sequence",       "packet_seq_err",      "out_of_buffer",
                                 "local_ack_timeout_err", "rnr_nak_retry_err",   "req_cqe_error",
                                 "resp_cqe_error",        "rx_icrc_encapsulated"};

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (fs::is_directory(entry->path(), ignored)) found.push_back(entry->path());
  std::ranges::sort(found);
  return found;
}

template <typename Names>
void add(ErrorCounters& counters, const std::string& link, const fs::path& folder,
         const Names& names) {
  for (const char* name : names)
    if (const auto value = to_number(read_text(folder / name).value_or("")); value && *value >= 0)
      counters[link + "." + name] = static_cast<std::uint64_t>(*value);
}

/// Calls `visit` with the name and the folder of every port.
template <typename Visit>
void for_each_port(const fs::path& root, Visit visit) {
  for (const fs::path& device : folders_in(root / "sys/class/infiniband"))
    for (const fs::path& port : folders_in(device / "ports"))
      visit(device.filename().string() + "/" + port.filename().string(), port);
}

}  // namespace

std::vector<FabricPort> read_fabric_ports(const fs::path& root) {
  std::vector<FabricPort> ports;
  for_each_port(root, [&](const std::string& name, const fs::path& folder) {
    FabricPort port{name, read_text(folder / "state"), std::nullopt, std::nullopt};  // "4: ACTIVE"
    if (port.state && port.state->find(": ") != std::string::npos)
      port.state = port.state->substr(port.state->find(": ") + 2);
    const std::string rate = read_text(folder / "rate").value_or("");  // "100 Gb/sec (4X EDR)"
    port.gigabits_per_second = to_number(rate.substr(0, rate.find(' ')));
    // This counter has a unit of four bytes, also where the link has more lanes.
    if (const auto words = to_number(read_text(folder / "counters/port_xmit_data").value_or(""));
        words && *words >= 0)
      port.sent_bytes = 4 * static_cast<std::uint64_t>(*words);
    ports.push_back(std::move(port));
  });
  return ports;
}

ErrorCounters read_error_counters(const fs::path& root) {
  ErrorCounters counters;
  for (const fs::path& interface : folders_in(root / "sys/class/net"))
    if (interface.filename() != "lo")
      add(counters, interface.filename(), interface / "statistics", kOfInterfaces);
  for_each_port(root, [&](const std::string& name, const fs::path& folder) {
    add(counters, name, folder / "counters", kOfPorts);
    add(counters, name, folder / "hw_counters", kOfHardware);
  });
  return counters;
}

std::map<std::string, std::uint64_t> errors_by_link(const ErrorCounters& counters) {
  std::map<std::string, std::uint64_t> links;
  for (const auto& [name, value] : counters) links[name.substr(0, name.rfind('.'))] += value;
  return links;
}

ErrorCounters risen(const ErrorCounters& before, const ErrorCounters& after) {
  ErrorCounters rose;
  for (const auto& [name, value] : after)
    if (const auto old = before.find(name); old != before.end() && value > old->second)
      rose[name] = value - old->second;
  return rose;
}

}  // namespace scalemark
