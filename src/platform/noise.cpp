// Counts disturbance by other guests, other processes and the network during a measurement.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "measure/clock.hpp"
#include "platform/fabric.hpp"
#include "platform/processes.hpp"
#include "platform/sources.hpp"

namespace scalemark {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

std::optional<CpuSeconds> cpu_seconds(std::string_view proc_stat, double ticks_per_second) {
  const auto line = line_value(proc_stat, "cpu");
  if (!line || ticks_per_second <= 0) return std::nullopt;
  // The columns are: user nice system idle iowait irq softirq steal. The guest times after them are
  // already included in user and nice.
  std::istringstream words(*line);
  CpuSeconds seconds;
  double ticks = 0;
  int field = 0;
  for (; field < 8 && words >> ticks; ++field) {
    const double more = ticks / ticks_per_second;
    seconds.total += more;
    if (field < 3) seconds.busy += more;
    if (field == 7) seconds.steal = more;
  }
  if (field < 8) return std::nullopt;
  return seconds;
}

namespace {

void read_links(NoiseSnapshot& snapshot, const std::filesystem::path& root) {
  const std::vector<Nic> nics = read_nics(root);
  // Bridges and veth pairs repeat the traffic of the physical interfaces. Where there are no
  // physical ones (a network namespace), they are the traffic.
  const bool physical = std::ranges::any_of(nics, &Nic::physical);
  for (const Nic& nic : nics) {
    if (physical && !nic.physical) continue;
    if (!nic.over_infiniband) snapshot.nic_bytes[nic.name] = {nic.rx_bytes, nic.tx_bytes};
    snapshot.nic_errors[nic.name] = nic.errors;
  }
  const auto errors = errors_by_link(read_error_counters(root));
  for (const FabricPort& port : read_fabric_ports(root)) {
    if (port.sent_bytes) snapshot.port_bytes[port.name] = *port.sent_bytes;
    const auto counted = errors.find(port.name);
    if (counted != errors.end()) snapshot.nic_errors[port.name] = counted->second;
  }
}

}  // namespace

NoiseSnapshot noise_snapshot(std::optional<int> family, const std::filesystem::path& root) {
  NoiseSnapshot snapshot;
  snapshot.taken_at = steady_seconds();
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const auto cpu = cpu_seconds(read_text("/proc/stat").value_or(""), ticks)) {
    snapshot.steal_seconds = cpu->steal;
    snapshot.total_cpu_seconds = cpu->total;
    snapshot.busy_cpu_seconds = cpu->busy;
  }
  if (family) snapshot.family_cpu_seconds = family_cpu_seconds(processes(), *family, getpid());
  snapshot.throttled_seconds = read_cgroup().throttled_seconds;
  if (const auto load = read_text("/proc/loadavg"))
    snapshot.load1 = to_number(load->substr(0, load->find(' ')));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  snapshot.own_cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  snapshot.voluntary_switches = usage.ru_nvcsw;
  snapshot.involuntary_switches = usage.ru_nivcsw;
  read_links(snapshot, root);
  return snapshot;
}

namespace {
std::optional<double> difference(const std::optional<double>& before,
                                 const std::optional<double>& after) {
  if (!before || !after) return std::nullopt;
  return std::max(0.0, *after - *before);
}
}  // namespace

NoiseEvidence noise_between(const NoiseSnapshot& before, const NoiseSnapshot& after) {
  NoiseEvidence noise;
  const auto steal = difference(before.steal_seconds, after.steal_seconds);
  const auto total = difference(before.total_cpu_seconds, after.total_cpu_seconds);
  // The kernel counts in ticks, so a short measurement may see none.
  if (steal && total) noise.steal = *total > 0 ? std::min(1.0, *steal / *total) : 0.0;
  noise.throttled_seconds = difference(before.throttled_seconds, after.throttled_seconds);
  noise.busy_cpu_seconds = difference(before.busy_cpu_seconds, after.busy_cpu_seconds);
  noise.family_cpu_seconds = difference(before.family_cpu_seconds, after.family_cpu_seconds);
  noise.own_cpu_seconds = after.own_cpu_seconds - before.own_cpu_seconds;
  noise.seconds = after.taken_at - before.taken_at;
  noise.load1 = after.load1;
  noise.context_switches = after.involuntary_switches - before.involuntary_switches;
  // A counter that went backwards belongs to an interface that was created anew.
  const auto add = [&](const std::string& name, std::uint64_t old, std::uint64_t now) {
    const std::uint64_t sent = now >= old ? now - old : 0;
    noise.link_bytes[name] = sent;
    noise.nic_bytes = noise.nic_bytes.value_or(0) + sent;
  };
  for (const auto& [name, bytes] : after.nic_bytes)
    if (const auto old = before.nic_bytes.find(name); old != before.nic_bytes.end())
      add(name, old->second.second, bytes.second);
  for (const auto& [name, bytes] : after.port_bytes)
    if (const auto old = before.port_bytes.find(name); old != before.port_bytes.end())
      add(name, old->second, bytes);
  for (const auto& [name, errors] : after.nic_errors) {
    const auto old = before.nic_errors.find(name);
    if (old != before.nic_errors.end() && errors >= old->second)
      noise.error_counters[name] = errors - old->second;
  }
  return noise;
}

}  // namespace scalemark
