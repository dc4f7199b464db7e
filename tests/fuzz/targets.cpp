// See targets.hpp.
#include "fuzz/targets.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/preflight/rules.hpp"
#include "analysis/projection/measured_curve.hpp"
#include "config/json_text.hpp"
#include "config/load.hpp"
#include "config/sweep_plan.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "report/shown_text.hpp"
#include "result/baseline.hpp"
#include "result/journal.hpp"
#include "result/measured_launch.hpp"
#include "result/preflight_reference.hpp"
#include "result/published_curve.hpp"
#include "result/result_set.hpp"

namespace scalemark::fuzz {
namespace {

constexpr int kCores = 4;

[[noreturn]] void fail(const Target& target, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", std::string(target.name).c_str(), what.c_str());
  std::abort();
}

void read_configuration(std::string_view text) { parse_config_text(text, "fuzz.json"); }

void read_plan(std::string_view text) {
  const SweepPlan plan =
      parse_sweep_plan(parse_json_object(text, "fuzz.json", "plan"), "fuzz.json", {}, kCores);
  launch_order(plan);
}

void read_journal_lines(std::string_view text) {
  for (const JournalEntry& entry : parse_journal(text, "fuzz.jsonl"))
    if (entry.status != "ok") (void)entry.failure();
}

/// The curve that scalemark project makes of launches: sums and quotients of all their figures.
void use(std::vector<MeasuredLaunch> launches) {
  if (launches.empty()) return;
  std::vector<ResultSet> sets(1);
  ResultSet& set = sets.front();
  set.label = set.path = "fuzz";
  set.launches = std::move(launches);
  count_copies_once(sets);
  for (const CurvePoint& point : curve_of(set).points)
    for (const double seconds : point.step_seconds)
      if (!std::isfinite(seconds)) throw std::logic_error("a step takes no number of seconds");
}

void read_record_text(std::string_view text) {
  const Json record = parse_record(text, "fuzz.json");
  launches_within(record, "fuzz.json");
  const std::string kind = record.at("kind");
  if (kind == "run" || kind == "inference" || kind == "scaling" || kind == "instances")
    use(measured_launches(record, "fuzz.json"));
}

/// With its checksum made to fit: damage would be refused by it, a file made by hand has one.
void read_baseline(std::string_view text) {
  Json record = parse_record(text, "fuzz.json");
  if (record.at("kind") != "baseline") return;
  record.erase("checksum");
  record["checksum"] = sha256_hex(nlohmann::json::parse(record.dump()).dump());
  use(launches_of_baseline(record, "fuzz.json"));
}

void read_rules(std::string_view text) { parse_preflight_rules(text, "fuzz.json"); }

void read_curve(std::string_view text) {
  curve_of(parse_published_curve(text, "fuzz.json"), "fuzz", "fuzz.json");
}

constexpr std::array kTargets{
    Target{"configuration", read_configuration}, Target{"plan", read_plan},
    Target{"journal", read_journal_lines},       Target{"baseline", read_baseline},
    Target{"record", read_record_text},          Target{"rules", read_rules},
    Target{"published_curve", read_curve},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

void try_out(const Target& target, std::string_view text) {
  try {
    target.read(text);
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) fail(target, "an error without words");
    shown_lines(error.what());
  } catch (const std::exception& error) {
    fail(target, std::string("not an Error: ") + error.what());
  }
}

}  // namespace scalemark::fuzz
