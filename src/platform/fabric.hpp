// InfiniBand and RoCE ports, and the error counters of all links. LibTorch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

struct FabricPort {
  std::string name;                           ///< "mlx5_0/1": device and port
  std::optional<std::string> state;           ///< "ACTIVE", "DOWN", ...
  std::optional<double> gigabits_per_second;  ///< of the link as it came up
  std::optional<std::uint64_t> sent_bytes;    ///< RDMA and, of InfiniBand, IP over it
};
/// Ports below `root`/sys/class/infiniband, sorted by name.
std::vector<FabricPort> read_fabric_ports(const std::filesystem::path& root = "/");

/// Error counters by link and name: of network interfaces but loopback ("eth0.rx_errors"), of
/// fabric ports those of the port and of its hardware ("mlx5_0/1.symbol_error"). The port's own may
/// stand still at their largest value.
using ErrorCounters = std::map<std::string, std::uint64_t>;
ErrorCounters read_error_counters(const std::filesystem::path& root = "/");

/// The sum of a link's counters, by link.
std::map<std::string, std::uint64_t> errors_by_link(const ErrorCounters& counters);

/// Those that rose, by how much. A counter that fell belongs to a link that was made anew.
ErrorCounters risen(const ErrorCounters& before, const ErrorCounters& after);

}  // namespace scalemark
