// Network interfaces: state, speed, driver, firmware and counters.
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

std::uint64_t counter(const fs::path& nic, const char* name) {
  const auto text = read_text(nic / "statistics" / name);
  const auto value = text ? to_number(*text) : std::nullopt;
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

Nic read_nic(const fs::path& folder) {
  Nic nic;
  nic.name = folder.filename();
  nic.state = read_text(folder / "operstate");
  nic.over_infiniband = read_text(folder / "type") == "32";  // ARPHRD_INFINIBAND
  std::error_code error;
  nic.physical = fs::exists(folder / "device", error);
  const fs::path driver = fs::read_symlink(folder / "device/driver", error);
  if (!error) nic.driver = driver.filename();
  const auto speed = read_text(folder / "speed");
  const auto mbps = speed ? to_number(*speed) : std::nullopt;
  if (mbps && *mbps > 0) nic.speed_mbps = static_cast<std::int64_t>(*mbps);  // -1: link down
  nic.rx_bytes = counter(folder, "rx_bytes");
  nic.tx_bytes = counter(folder, "tx_bytes");
  for (const char* name : {"rx_errors", "tx_errors", "rx_dropped", "tx_dropped"})
    nic.errors += counter(folder, name);
  return nic;
}
}  // namespace

std::vector<Nic> read_nics(const fs::path& root) {
  std::vector<Nic> nics;
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/class/net", error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path folder = entry->path();
    std::error_code ignored;
    if (folder.filename() == "lo" || !fs::is_directory(folder, ignored)) continue;
    nics.push_back(read_nic(folder));
  }
  std::ranges::sort(nics, {}, &Nic::name);
  return nics;
}

std::optional<std::string> nic_firmware(const std::string& name) {
  if (name.size() >= IFNAMSIZ) return std::nullopt;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
  request.ifr_data = reinterpret_cast<char*>(&info);
  const int failed = ioctl(fd, SIOCETHTOOL, &request);
  close(fd);
  if (failed != 0) return std::nullopt;
  const std::string version(info.fw_version, strnlen(info.fw_version, sizeof info.fw_version));
  if (version.empty() || version == "N/A") return std::nullopt;
  return version;
}

}  // namespace scalemark
