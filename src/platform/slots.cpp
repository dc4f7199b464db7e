// See slots.hpp.
#include "platform/slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "config/numbers.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "platform/topology.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostCpus = 65536;

[[noreturn]] void refuse(const std::string& what) { throw ConfigError("--slots: " + what); }

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// A slot, and the CPUs that its GPU is near to where it is still without any.
struct Item {
  Slot slot;
  std::vector<int> near = {};
  bool placed = true;
};

class Layout {
 public:
  Layout(Device device, const SlotSource& source) : device_(device), source_(source) {
    for (const auto& core : source.cores) allowed_.insert(core.begin(), core.end());
  }

  void add(const std::string& text) {
    const std::string item = trimmed(text);
    if (item.empty()) refuse("an item between semicolons is empty; such as \"0-3;4-7\"");
    const bool named = item.starts_with("GPU-") || item.starts_with("MIG-");
    const bool all = item == "gpu" || item == "mig";
    if ((named || all) && device_ == Device::cpu)
      refuse(fmt::format("{} is no list of CPUs, and --device is cpu", quote(item)));
    if (all) return add_all(item == "mig");
    named ? add_named(item) : add_cpus(item);
  }

  /// All GPUs and slices there are.
  void add_visible() {
    for (const GpuInfo& gpu : source_.gpus.gpus) {
      if (!gpu.mig) add_device(gpu, nullptr);
      for (const MigSlice& slice : gpu.slices) add_device(gpu, &slice);
    }
  }

  std::vector<Slot> slots() {
    place_devices();
    std::vector<Slot> made;
    for (Item& item : items_) made.push_back(std::move(item.slot));
    return made;
  }

 private:
  void add_cpus(const std::string& text) {
    if (device_ == Device::cuda)
      refuse(fmt::format("{} has no GPU, and --device cuda needs one in every slot", quote(text)));
    Item item;
    item.slot.cpus = take(text, text);
    items_.push_back(std::move(item));
  }

  void add_all(bool slices) {
    const std::size_t before = items_.size();
    for (const GpuInfo& gpu : source_.gpus.gpus) {
      if (!slices && !gpu.mig) add_device(gpu, nullptr);
      for (std::size_t i = 0; slices && i < gpu.slices.size(); ++i) add_device(gpu, &gpu.slices[i]);
    }
    if (items_.size() > before) return;
    const std::string& reason = source_.gpus.reason;
    throw EnvironmentError(
        fmt::format("--slots {}: there is none{}", slices ? "mig" : "gpu",
                    !reason.empty() ? ": " + reason
                    : slices        ? ": no visible GPU is in MIG mode with slices"
                             : ": all visible GPUs are in MIG mode; name their slices, or mig"));
  }

  void add_named(const std::string& text) {
    const std::size_t at = text.find('@');
    const std::string uuid = trimmed(text.substr(0, at));
    if (!add_device_of(uuid))
      throw EnvironmentError(fmt::format("--slots: there is no {} (visible: {})", uuid, visible()));
    if (at == text.npos) return;
    items_.back().slot.cpus = take(text.substr(at + 1), text);
    items_.back().placed = true;
  }

  /// False where there is none.
  bool add_device_of(const std::string& uuid) {
    for (const GpuInfo& gpu : source_.gpus.gpus) {
      if (gpu.uuid == uuid && gpu.mig)
        throw EnvironmentError(fmt::format(
            "--slots: {} is in MIG mode, in which CUDA sees its slices alone: name these", uuid));
      if (gpu.uuid == uuid) return add_device(gpu, nullptr), true;
      for (const MigSlice& slice : gpu.slices)
        if (slice.uuid == uuid) return add_device(gpu, &slice), true;
    }
    return false;
  }

  void add_device(const GpuInfo& gpu, const MigSlice* slice) {
    Item item;
    item.slot.kind = slice ? Slot::Kind::mig : Slot::Kind::gpu;
    item.slot.uuid = slice ? slice->uuid : gpu.uuid;
    item.slot.device_name = slice && !slice->name.empty() ? slice->name : gpu.name;
    item.near = gpu.near_cpus;
    item.placed = false;
    if (!uuids_.insert(item.slot.uuid).second) refuse(item.slot.uuid + " is there twice");
    items_.push_back(std::move(item));
  }

  std::string visible() const {
    std::vector<std::string> names;
    for (const GpuInfo& gpu : source_.gpus.gpus) {
      if (!gpu.mig) names.push_back(gpu.uuid);
      for (const MigSlice& slice : gpu.slices) names.push_back(slice.uuid);
    }
    return names.empty() ? source_.gpus.reason : join(names, ", ");
  }

  /// CPUs that the user names; each belongs to one slot.
  std::vector<int> take(const std::string& list, const std::string& item) {
    auto cpus = parse_cpu_list(trimmed(list));
    if (!cpus)
      refuse(
          fmt::format("{} is neither a list of CPUs such as 0-3,8 nor a UUID (GPU-..., MIG-...) "
                      "nor gpu or mig",
                      quote(list)));
    for (const int cpu : *cpus) {
      if (!allowed_.contains(cpu))
        refuse(fmt::format("CPU {} of {} is not among those that this process may use ({})", cpu,
                           quote(item), format_cpu_list({allowed_.begin(), allowed_.end()})));
      if (!owner_.try_emplace(cpu, item).second)
        refuse(fmt::format("CPU {} is in {} and in {}; slots have no CPU in common", cpu,
                           quote(owner_[cpu]), quote(item)));
    }
    std::ranges::sort(*cpus);
    return *cpus;
  }

  /// Whole free cores near a GPU; where its mask or the machine leaves none there, all free ones.
  std::vector<std::vector<int>> free_cores(const std::vector<int>& near) const {
    std::vector<std::vector<int>> all, close;
    for (const auto& core : source_.cores) {
      if (std::ranges::any_of(core, [&](int cpu) { return owner_.contains(cpu); })) continue;
      all.push_back(core);
      if (std::ranges::find(near, core.front()) != near.end()) close.push_back(core);
    }
    return close.empty() ? all : close;
  }

  /// Devices near the same CPUs share these evenly, by cores or, where there are fewer cores than
  /// devices, by logical CPUs.
  void place_devices() {
    for (const Item& first : items_) {
      if (first.placed) continue;
      std::vector<Item*> group;
      for (Item& item : items_)
        if (!item.placed && item.near == first.near) group.push_back(&item);
      auto parts = free_cores(first.near);
      if (parts.size() < group.size()) {
        std::vector<std::vector<int>> single;
        for (const auto& core : parts)
          for (const int cpu : core) single.push_back({cpu});
        parts = std::move(single);
      }
      if (parts.size() < group.size())
        refuse(fmt::format("{} GPUs or slices share {} CPUs: each needs one of its own; name fewer",
                           group.size(), parts.size()));
      const std::size_t share = parts.size() / group.size();
      for (std::size_t i = 0; i < group.size(); ++i) give(*group[i], parts, i * share, share);
    }
  }

  void give(Item& item, const std::vector<std::vector<int>>& parts, std::size_t first,
            std::size_t count) {
    auto& cpus = item.slot.cpus;
    for (std::size_t i = first; i < first + count; ++i)
      cpus.insert(cpus.end(), parts[i].begin(), parts[i].end());
    std::ranges::sort(cpus);
    for (const int cpu : cpus) owner_[cpu] = item.slot.uuid;
    item.placed = true;
  }

  Device device_;
  const SlotSource& source_;
  std::set<int> allowed_;
  std::map<int, std::string> owner_;  ///< of a CPU: its item
  std::set<std::string> uuids_;
  std::vector<Item> items_;
};

std::vector<Slot> equal_shares(std::int64_t count, const SlotSource& source) {
  const auto cores = static_cast<std::int64_t>(source.cores.size());
  if (count > cores)
    throw ConfigError(
        fmt::format("--instances {}: only {}, and every instance needs one of its own; give CPUs "
                    "(--slots \"0;1;2\") to count threads of cores",
                    count, counted(source.cores.size(), "core")));
  std::vector<Slot> slots;
  const std::int64_t share = cores / count;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<int>& cpus = slots.emplace_back().cpus;
    for (std::int64_t j = i * share; j < (i + 1) * share; ++j) {
      const auto& core = source.cores[static_cast<std::size_t>(j)];
      cpus.insert(cpus.end(), core.begin(), core.end());
    }
    std::ranges::sort(cpus);
  }
  return slots;
}

}  // namespace

std::string to_string(Slot::Kind kind) {
  if (kind == Slot::Kind::cpu) return "cpu";
  return kind == Slot::Kind::gpu ? "gpu" : "mig";
}

std::string Slot::title() const {
  const std::string list = (cpus.size() == 1 ? "CPU " : "CPUs ") + format_cpu_list(cpus);
  return uuid.empty() ? list : uuid + " with " + list;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto first = parse_integer(range.substr(0, dash));
    const auto last = dash == range.npos ? first : parse_integer(range.substr(dash + 1));
    constexpr std::int64_t most = kMostCpus;
    if (!first || !last || *first < 0 || *last < *first || *last >= most) return std::nullopt;
    if (cpus.size() + static_cast<std::size_t>(*last - *first) >= kMostCpus) return std::nullopt;
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (comma == text.npos) return cpus;
    text.remove_prefix(comma + 1);
  }
}

void find_numa(std::vector<Slot>& slots) {
  const Topology topology = load_topology();
  for (Slot& slot : slots)
    if (topology) slot.numa = numa_of(topology.get(), slot.cpus);
}

SlotSource slot_source(Device device) {
  SlotSource source;
  source.cores = allowed_cores();
  source.usable_cores = physical_cores();
  if (device == Device::cpu)
    source.gpus.reason = "--device is cpu";
  else
    source.gpus = visible_gpus();
  return source;
}

std::vector<Slot> make_slots(const std::optional<std::string>& layout,
                             std::optional<std::int64_t> count, Device device,
                             const SlotSource& source) {
  if (device == Device::cuda && source.gpus.gpus.empty())
    throw EnvironmentError("--device cuda: " + source.gpus.reason);
  if (!layout && (device == Device::cpu || source.gpus.gpus.empty()))
    return equal_shares(count.value_or(source.usable_cores), source);
  Layout made(device, source);
  if (layout) {
    std::istringstream items(*layout + ";");
    for (std::string item; std::getline(items, item, ';');) made.add(item);
  } else {
    made.add_visible();
  }
  std::vector<Slot> slots = made.slots();
  const auto found = static_cast<std::int64_t>(slots.size());
  if (slots.empty()) throw EnvironmentError("all visible GPUs are in MIG mode without slices");
  if (count.value_or(1) > found)
    throw ConfigError(fmt::format("--instances {}: only {}; give as many with --slots", *count,
                                  counted(slots.size(), "slot")));
  if (count) slots.resize(static_cast<std::size_t>(*count));
  return slots;
}

}  // namespace scalemark
