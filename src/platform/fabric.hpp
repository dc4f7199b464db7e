// Reads InfiniBand and RoCE ports, and the error counters of all links. LibTorch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// A port of an InfiniBand or RoCE adapter.
struct FabricPort {
  std::string name;                           ///< "mlx5_0/1": device and port
  std::optional<std::string> state;           ///< "ACTIVE", "DOWN", ...
  std::optional<double> gigabits_per_second;  ///< active rate of the link
  std::optional<std::uint64_t> sent_bytes;    ///< RDMA and, of InfiniBand, IP over it
};
/// Returns the ports below `root`/sys/class/infiniband, sorted by name.
std::vector<FabricPort> read_fabric_ports(const std::filesystem::path& root = "/");

/// Error counters by link and name: those of network interfaces except loopback ("eth0.rx_errors"),
/// and those of fabric ports, of the port itself and of its hardware ("mlx5_0/1.symbol_error"). The
/// port's own counters may stop at their largest value.
using ErrorCounters = std::map<std::string, std::uint64_t>;
ErrorCounters read_error_counters(const std::filesystem::path& root = "/");

/// Returns for each link the sum of its counters.
std::map<std::string, std::uint64_t> errors_by_link(const ErrorCounters& counters);

/// Returns the counters that rose, with their increase. A counter that fell belongs to a link that
/// was created anew and is left out.
ErrorCounters risen(const ErrorCounters& before, const ErrorCounters& after);

}  // namespace scalemark
