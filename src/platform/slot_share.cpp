// See slot_share.hpp.
#include "platform/slot_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "config/text.hpp"
#include "error.hpp"
#include "platform/platform.hpp"
#include "platform/topology.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kMostCpus = 65536;

/// The places of `words` that are on `host`: one name alone need not be that which the host has.
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

std::string to_string(SlotPlace::Kind kind) {
  if (kind == SlotPlace::Kind::cpu) return "cpu";
  return kind == SlotPlace::Kind::gpu ? "gpu" : "mig";
}

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

}  // namespace scalemark
