// Makes slots from a layout or from equal shares of the machine, and checks them.
#include "platform/slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include "config/text.hpp"
#include "error.hpp"
#include "platform/platform.hpp"
#include "platform/topology.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostCpus = 65536;

/// Returns the places of `words` that are on `host`. A single host name need not be the name that
/// the host has.
std::vector<PlaceWords> places_on(const std::string& host, std::istringstream& words) {
  std::vector<PlaceWords> all, here;
  for (std::string place; std::getline(words, place, '+');) all.push_back(place_words(place));
  for (const PlaceWords& place : all)
    if (is_same_host(place.host, host)) here.push_back(place);
  const bool one_host = std::ranges::all_of(
      all, [&](const PlaceWords& place) { return place.host == all.front().host; });
  return one_host ? all : here;
}

std::string devices_of(const std::vector<PlaceWords>& places, const PlaceWords& mine) {
  if (is_slice(mine.uuid)) return mine.uuid;
  std::string list;
  for (const PlaceWords& place : places)
    if (!place.uuid.empty()) list += (list.empty() ? "" : ",") + place.uuid;
  return list;
}

}  // namespace

std::string SlotPlace::title() const {
  const std::string list = (cpus.size() == 1 ? "CPU " : "CPUs ") + format_cpu_list(cpus);
  return (host.empty() ? "" : host + ": ") + (uuid.empty() ? list : uuid + " with " + list);
}

std::string SlotPlace::text() const {
  return (host.empty() ? "" : host + ":") + (uuid.empty() ? "" : uuid + "@") +
         format_cpu_list(cpus);
}

PlaceWords place_words(std::string_view text) {
  PlaceWords words;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    words.host = trimmed(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  const std::string rest = trimmed(text);
  if (!rest.starts_with("GPU-") && !is_slice(rest)) {
    words.cpus = rest;
    return words;
  }
  const std::size_t at = rest.find('@');
  words.uuid = trimmed(rest.substr(0, at));
  if (at != rest.npos) words.cpus = trimmed(rest.substr(at + 1));
  return words;
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

std::vector<std::vector<int>> equal_shares(std::vector<std::vector<int>> parts, std::size_t count) {
  if (parts.size() < count) {
    std::vector<std::vector<int>> single;
    for (const auto& core : parts)
      for (const int cpu : core) single.push_back({cpu});
    parts = std::move(single);
  }
  std::vector<std::vector<int>> shares;
  const std::size_t size = parts.size() / count;
  for (std::size_t i = 0; size > 0 && i < count; ++i) {
    std::vector<int>& cpus = shares.emplace_back();
    for (std::size_t j = i * size; j < (i + 1) * size; ++j)
      cpus.insert(cpus.end(), parts[j].begin(), parts[j].end());
    std::ranges::sort(cpus);
  }
  return shares;
}

bool is_same_host(std::string_view a, std::string_view b) {
  const bool both_full = a.find('.') != a.npos && b.find('.') != b.npos;
  return both_full ? a == b : a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

bool is_this_host(const std::string& name) {
  return name == "localhost" || name == "127.0.0.1" || is_same_host(name, host_name());
}

std::string slot_words(const std::vector<SlotPlace>& places, std::size_t ranks_per_place) {
  std::string words = std::to_string(ranks_per_place);
  for (const SlotPlace& place : places)
    words += (&place == &places.front() ? ' ' : '+') + place.text();
  return words;
}

SlotShare share_of_slot(const std::string& words, const std::string& host, int local_rank) {
  std::istringstream text(words);
  std::size_t ranks_per_place = 0;
  text >> ranks_per_place;
  const std::vector<PlaceWords> places = places_on(host, text);
  const auto rank = static_cast<std::size_t>(std::max(0, local_rank));
  if (ranks_per_place == 0 || rank / ranks_per_place >= places.size())
    throw EnvironmentError(fmt::format(
        "host {} holds no place for its rank {} in the slot {}: name hosts as their command "
        "hostname does",
        host, rank, quote(words)));
  const PlaceWords& mine = places[rank / ranks_per_place];
  const auto cpus = parse_cpu_list(mine.cpus.value_or(""));
  if (!cpus)
    throw EnvironmentError(fmt::format(
        "{}={}: unset it, scalemark instances sets it for its processes", kSlotVariable, words));
  const Topology topology = load_topology();
  const auto cores =
      topology ? cores_within(topology.get(), *cpus) : std::vector<std::vector<int>>{*cpus};
  auto shares = equal_shares(cores, ranks_per_place);
  if (shares.empty()) shares.assign(ranks_per_place, *cpus);
  return {shares[rank % ranks_per_place], devices_of(places, mine), !mine.host.empty()};
}

namespace {

[[noreturn]] void refuse(const std::string& what) { throw ConfigError("--slots: " + what); }

/// A place, with the CPUs near its GPU as long as it has no CPUs of its own.
struct Item {
  SlotPlace place;
  std::vector<int> near = {};
  bool placed = true;
};

class Layout {
 public:
  Layout(const SlotRequest& request, const SlotSource& source)
      : request_(request), ranks_(static_cast<std::size_t>(request.ranks)), source_(source) {
    for (const auto& core : source.cores) allowed_.insert(core.begin(), core.end());
  }

  /// Adds an item between semicolons: a slot, or as many slots as a word stands for.
  void add(const std::string& text) {
    const std::string item = trimmed(text);
    if (item.empty()) refuse("an item between semicolons is empty; such as \"0-3;4-7\"");
    const bool slices = item == "mig";
    const std::size_t before = items_.size();
    if (item != "gpu" && !slices) {
      std::istringstream places(item + "+");
      for (std::string place; std::getline(places, place, '+');) add_place(place, item);
      slot_sizes_.push_back(items_.size() - before);
      return check_ranks(item);
    }
    refuse_on_cpu(item);
    for (const GpuInfo& gpu : source_.gpus.gpus) {
      if (!slices && !gpu.mig) add_device(gpu, nullptr);
      for (std::size_t i = 0; slices && i < gpu.slices.size(); ++i) add_device(gpu, &gpu.slices[i]);
    }
    if (items_.size() == before) refuse_none(slices);
    share_out(items_.size() - before);
  }

  /// Adds all visible GPUs and slices.
  void add_visible() {
    for (const GpuInfo& gpu : source_.gpus.gpus) {
      if (!gpu.mig) add_device(gpu, nullptr);
      for (const MigSlice& slice : gpu.slices) add_device(gpu, &slice);
    }
    share_out(items_.size());
  }

  std::vector<Slot> slots() {
    place_devices();
    std::vector<Slot> made;
    auto item = items_.begin();
    for (const std::size_t size : slot_sizes_) {
      Slot& slot = made.emplace_back();
      for (std::size_t i = 0; i < size; ++i) slot.places.push_back(std::move((item++)->place));
    }
    return made;
  }

 private:
  /// Divides the devices into slots of as many devices as a job has ranks. A remainder stays
  /// unused.
  void share_out(std::size_t devices) {
    if (devices < ranks_ && devices > 0)
      refuse(fmt::format("{} for jobs of {} ranks: each rank needs one of its own; fewer --ranks",
                         counted(devices, "GPU or slice"), ranks_));
    slot_sizes_.insert(slot_sizes_.end(), devices / ranks_, ranks_);
    items_.resize(items_.size() - devices % ranks_);
  }

  /// Checks the slot that was added last.
  void check_ranks(const std::string& item) const {
    const std::size_t places = slot_sizes_.back();
    const auto first = items_.end() - static_cast<std::ptrdiff_t>(places);
    const bool device =
        std::any_of(first, items_.end(), [](const Item& one) { return !one.place.uuid.empty(); });
    if (device ? places != ranks_ : ranks_ % places != 0)
      refuse(fmt::format("{} has {}, and a job {}: {} (--ranks)", quote(item),
                         counted(places, "place"), counted(ranks_, "rank"),
                         device ? "each rank needs a GPU or slice of its own"
                                : "each place takes as many of them"));
    std::map<std::string, std::size_t> on_host;
    for (auto one = first; one != items_.end(); ++one) ++on_host[one->place.host];
    for (const auto& [host, count] : on_host)
      if (count != on_host.begin()->second)
        refuse(fmt::format("{}: give every host of a slot as many places", quote(item)));
  }

  void refuse_on_cpu(const std::string& item) const {
    if (request_.device == Device::cpu)
      refuse(fmt::format("{} is no list of CPUs, and --device is cpu", quote(item)));
  }

  [[noreturn]] void refuse_none(bool slices) const {
    const std::string& reason = source_.gpus.reason;
    throw EnvironmentError(
        fmt::format("--slots {}: there is none{}", slices ? "mig" : "gpu",
                    !reason.empty() ? ": " + reason
                    : slices        ? ": no visible GPU is in MIG mode with slices"
                             : ": all visible GPUs are in MIG mode; name their slices, or mig"));
  }

  void add_place(const std::string& text, const std::string& item) {
    const PlaceWords words = place_words(text);
    const bool here = words.host.empty() || is_this_host(words.host);
    if (text.find(':') != text.npos) check_host(words.host, item);
    if (words.uuid.empty())
      add_cpus(item);
    else
      add_named(words, item, here);
    SlotPlace& place = items_.back().place;
    place.host = words.host;
    place.here = here;
    if (!words.cpus) return;
    place.cpus = take(*words.cpus, item, place);
    items_.back().placed = true;
  }

  /// Checks a host name, since it becomes a word of the launcher's command line.
  static void check_host(const std::string& host, const std::string& item) {
    const auto legal = [](unsigned char c) {
      return std::isalnum(c) || c == '.' || c == '-' || c == '_';
    };
    if (host.empty() || host.front() == '-' || !std::ranges::all_of(host, legal))
      refuse(fmt::format("{}: {} is no name of a host, such as n0 in \"n0:0-3;n1:0-3\"",
                         quote(item), quote(host)));
  }

  void add_cpus(const std::string& item) {
    if (request_.device == Device::cuda)
      refuse(fmt::format("{} has no GPU, and --device cuda needs one in every slot", quote(item)));
    items_.emplace_back();
  }

  void add_named(const PlaceWords& words, const std::string& item, bool here) {
    refuse_on_cpu(item);
    if (!here && !words.cpus)
      refuse(
          fmt::format("{}: what is near a GPU of another host is not known here; give its CPUs, "
                      "as in {}:{}@0-7",
                      quote(item), words.host, words.uuid));
    if (here && !add_device_of(words.uuid))
      throw EnvironmentError(
          fmt::format("--slots: there is no {} (visible: {})", words.uuid, visible()));
    if (here) return;
    Item far;
    far.place.kind = is_slice(words.uuid) ? SlotPlace::Kind::mig : SlotPlace::Kind::gpu;
    far.place.uuid = words.uuid;
    add_item(std::move(far));
  }

  /// Adds the GPU or slice of this UUID. Returns false where there is none.
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
    item.place.kind = slice ? SlotPlace::Kind::mig : SlotPlace::Kind::gpu;
    item.place.uuid = slice ? slice->uuid : gpu.uuid;
    item.place.device_name = slice && !slice->name.empty() ? slice->name : gpu.name;
    item.near = gpu.near_cpus;
    item.placed = false;
    add_item(std::move(item));
  }

  void add_item(Item item) {
    if (!uuids_.insert(item.place.uuid).second) refuse(item.place.uuid + " is there twice");
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

  /// Takes the CPUs that the user names. Each CPU belongs to one slot at most.
  std::vector<int> take(const std::string& list, const std::string& item, const SlotPlace& place) {
    auto cpus = parse_cpu_list(list);
    if (!cpus)
      refuse(
          fmt::format("{} is neither a list of CPUs such as 0-3,8 nor a UUID (GPU-..., MIG-...) "
                      "nor gpu or mig",
                      quote(list)));
    for (const int cpu : *cpus) {
      if (place.here && !allowed_.contains(cpu))
        refuse(fmt::format("CPU {} of {} is not among those that this process may use ({})", cpu,
                           quote(item), format_cpu_list({allowed_.begin(), allowed_.end()})));
      auto& owner = owner_[place.here ? "" : place.host.substr(0, place.host.find('.'))];
      if (!owner.try_emplace(cpu, item).second)
        refuse(fmt::format("CPU {} is in {} and in {}; slots have no CPU in common", cpu,
                           quote(owner[cpu]), quote(item)));
    }
    std::ranges::sort(*cpus);
    return *cpus;
  }

  /// Returns the free cores near a GPU of which all CPUs are free. Where the mask or the machine
  /// leaves none there, returns all free cores.
  std::vector<std::vector<int>> free_cores(const std::vector<int>& near) const {
    static const std::map<int, std::string> kNone;
    const auto found = owner_.find("");
    const auto& owners_here = found == owner_.end() ? kNone : found->second;
    std::vector<std::vector<int>> all, close;
    for (const auto& core : source_.cores) {
      if (std::ranges::any_of(core, [&](int cpu) { return owners_here.contains(cpu); })) continue;
      all.push_back(core);
      if (std::ranges::find(near, core.front()) != near.end()) close.push_back(core);
    }
    return close.empty() ? all : close;
  }

  /// Gives devices near the same CPUs even shares of these, by cores or, where there are fewer
  /// cores than devices, by logical CPUs.
  void place_devices() {
    for (const Item& first : items_) {
      if (first.placed) continue;
      std::vector<Item*> group;
      for (Item& item : items_)
        if (!item.placed && item.near == first.near) group.push_back(&item);
      const auto free = free_cores(first.near);
      const auto shares = equal_shares(free, group.size());
      if (shares.empty())
        refuse(fmt::format("{} GPUs or slices share {}: each needs one of its own; name fewer",
                           group.size(), counted(free.size(), "core")));
      for (std::size_t i = 0; i < group.size(); ++i) {
        group[i]->place.cpus = shares[i];
        group[i]->placed = true;
        for (const int cpu : shares[i]) owner_[""][cpu] = group[i]->place.uuid;
      }
    }
  }

  const SlotRequest& request_;
  std::size_t ranks_;
  const SlotSource& source_;
  std::set<int> allowed_;
  /// Maps a host ("" for this one) and a CPU to the item that has it.
  std::map<std::string, std::map<int, std::string>> owner_;
  std::set<std::string> uuids_;
  std::vector<Item> items_;              ///< places, slot after slot
  std::vector<std::size_t> slot_sizes_;  ///< places of each slot
};

/// Makes slots where there is neither a layout nor a GPU.
std::vector<Slot> shares_of_cores(const SlotRequest& request, const SlotSource& source) {
  const auto cores = static_cast<std::int64_t>(source.cores.size());
  const std::int64_t count =
      request.count.value_or(std::max<std::int64_t>(1, source.usable_cores / request.ranks));
  if (count > cores / request.ranks)
    throw ConfigError(fmt::format(
        "--instances {}{}: only {}, and every {} needs one of its own; give CPUs (--slots "
        "\"0;1;2\") to count threads of cores",
        count, request.ranks > 1 ? fmt::format(" of {} ranks", request.ranks) : "",
        counted(source.cores.size(), "core"), request.ranks > 1 ? "rank" : "instance"));
  std::vector<Slot> slots;
  for (std::vector<int>& cpus : equal_shares(source.cores, static_cast<std::size_t>(count)))
    slots.emplace_back().places.emplace_back().cpus = std::move(cpus);
  return slots;
}

}  // namespace

bool Slot::is_here() const { return std::ranges::all_of(places, &SlotPlace::here); }

bool Slot::is_crowded(std::int64_t ranks) const {
  const auto each = static_cast<std::size_t>(ranks) / places.size();
  return std::ranges::any_of(places, [&](const SlotPlace& one) { return one.cpus.size() < each; });
}

std::vector<std::string> Slot::hosts() const {
  std::vector<std::string> names;
  for (const SlotPlace& place : places)
    if (std::ranges::find(names, place.host) == names.end()) names.push_back(place.host);
  return names;
}

std::string Slot::title() const {
  std::vector<std::string> titles;
  for (const SlotPlace& place : places) titles.push_back(place.title());
  return join(titles, " and ");
}

void find_numa(std::vector<Slot>& slots) {
  const Topology topology = load_topology();
  for (Slot& slot : slots)
    for (SlotPlace& place : slot.places)
      if (topology && place.here) place.numa = numa_of(topology.get(), place.cpus);
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

std::vector<Slot> make_slots(const SlotRequest& request, const SlotSource& source) {
  const auto& [layout, count, device, ranks] = request;
  if (device == Device::cuda && source.gpus.gpus.empty() && !layout)
    throw EnvironmentError("--device cuda: " + source.gpus.reason);
  if (!layout && (device == Device::cpu || source.gpus.gpus.empty()))
    return shares_of_cores(request, source);
  Layout made(request, source);
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
