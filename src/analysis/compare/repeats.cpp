// See repeats.hpp.
#include "analysis/compare/repeats.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// What a repeat has in common with those of the same pass: its sweep or its record, and the
/// number.
using Bond = std::pair<std::string, std::int64_t>;

Bond bond_of(const Repeat& repeat) {
  const MeasuredLaunch& launch = *repeat.launch;
  return {launch.sweep.empty() ? launch.id : launch.sweep, repeat.number};
}

/// [bond]: its place; empty where two repeats have the same, which then says nothing.
std::map<Bond, std::size_t> places_of(const Repeats& repeats) {
  std::map<Bond, std::size_t> places;
  for (std::size_t i = 0; i < repeats.size(); ++i)
    if (!places.try_emplace(bond_of(repeats[i]), i).second) return {};
  return places;
}

/// A repeat that occurs a second time, as where two curves are launches of one repeat, is another.
using Occurrence = std::pair<std::int64_t, std::size_t>;

std::map<Occurrence, const Repeat*> by_number(const Repeats& repeats) {
  std::map<std::int64_t, std::size_t> seen;
  std::map<Occurrence, const Repeat*> numbered;
  for (const Repeat& repeat : repeats) numbered[{repeat.number, seen[repeat.number]++}] = &repeat;
  return numbered;
}

double rate_of(const Work& work, const MeasuredLaunch& launch, const std::string& metric) {
  return metric == "throughput" ? work.rate() : work.rate() / launch.ranks;
}

}  // namespace

bool is_of_work(const std::string& metric) {
  return metric == "throughput" || metric == "throughput_per_rank" || metric == "efficiency";
}

bool needs_rounds(const std::vector<const MeasuredLaunch*>& a,
                  const std::vector<const MeasuredLaunch*>& b) {
  const auto has_rounds = [](const MeasuredLaunch* launch) { return launch->repeats.size() > 1; };
  return (a.size() < 2 || b.size() < 2) &&
         (std::ranges::any_of(a, has_rounds) || std::ranges::any_of(b, has_rounds));
}

Repeats repeats_of(const std::vector<const MeasuredLaunch*>& launches, const std::string& metric,
                   bool rounds) {
  Repeats all;
  std::int64_t place = 0;
  for (const MeasuredLaunch* launch : launches) {
    const auto add = [&](std::int64_t number, const Work& work) {
      all.push_back({launch, number, rate_of(work, *launch, metric), work});
    };
    if (rounds && is_of_work(metric)) {
      for (const Work& work : launch->repeats) add(++place, work);
      continue;
    }
    const std::int64_t number = launch->sweep.empty() ? ++place : launch->repeat;
    if (is_of_work(metric)) {
      if (!launch->repeats.empty()) add(number, total(launch->repeats));
    } else if (const auto found = launch->metrics.find(metric); found != launch->metrics.end()) {
      all.push_back({launch, number, found->second, {}});
    }
  }
  return all;
}

Repeats efficiencies(const Repeats& throughputs, const Repeats& smallest) {
  Repeats all;
  const auto add = [&](const Repeat& repeat, const Repeat& partner) {
    const double rate = repeat.work.rate() / repeat.launch->ranks;
    const double alone = partner.work.rate() / partner.launch->ranks;
    all.push_back({repeat.launch, repeat.number, rate / alone, {}});
  };
  const auto places = places_of(smallest);
  for (const Repeat& repeat : throughputs)
    if (const auto found = places.find(bond_of(repeat)); found != places.end())
      add(repeat, smallest[found->second]);
  if (!all.empty()) return all;
  for (std::size_t i = 0; i < std::min(throughputs.size(), smallest.size()); ++i)
    add(throughputs[i], smallest[i]);
  return all;
}

std::vector<double> logs_of(const Repeats& repeats) {
  std::vector<double> logs;
  for (const Repeat& repeat : repeats) logs.push_back(std::log(repeat.value));
  return logs;
}

double value_of(const Repeats& repeats, const std::string& metric) {
  if (!is_of_work(metric) || metric == "efficiency") return std::exp(mean(logs_of(repeats)));
  Work all;
  for (const Repeat& repeat : repeats) all += repeat.work;
  return rate_of(all, *repeats.front().launch, metric);
}

bool of_one_sweep(const Repeats& a, const Repeats& b) {
  const MeasuredLaunch& first = *a.front().launch;
  const auto alike = [&](const Repeat& repeat) {
    return !first.sweep.empty() && repeat.launch->sweep == first.sweep &&
           repeat.launch->revision == first.revision;
  };
  return std::ranges::all_of(a, alike) && std::ranges::all_of(b, alike);
}

Pairing pair_up(const Repeats& base, const Repeats& other) {
  Pairing pairing;
  const auto ours = by_number(base), theirs = by_number(other);
  for (const auto& [occurrence, repeat] : ours) {
    const auto partner = theirs.find(occurrence);
    if (partner == theirs.end()) {
      pairing.base_alone.push_back(occurrence.first);
      continue;
    }
    pairing.base.push_back(*repeat);
    pairing.other.push_back(*partner->second);
  }
  for (const auto& [occurrence, repeat] : theirs)
    if (!ours.contains(occurrence)) pairing.other_alone.push_back(occurrence.first);
  return pairing;
}

}  // namespace scalemark
