// Runs `scalemark preflight`: measures the nodes that the ranks run on and lets rules judge them.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "analysis/preflight/rules.hpp"
#include "comm/abort.hpp"
#include "measure/clock.hpp"
#include "platform/fabric.hpp"
#include "record/wire.hpp"
#include "report/tables.hpp"
#include "session/announce.hpp"
#include "session/commands.hpp"
#include "session/preflight_measure.hpp"
#include "session/publish.hpp"
#include "streams.hpp"
#include "train/step_loop.hpp"

namespace scalemark {
namespace {

/// Opens the output at rank 0, before anything is measured.
struct Destination {
  std::unique_ptr<ResultFile> output, made_rules;
  std::vector<PreflightRule> rules;
};

Destination open_destination(Session& session) {
  const ResolvedConfig& config = session.config();
  Destination to;
  session.agree_on_files([&] {
    if (!session.is_root()) return;
    to.rules = read_preflight_rules(config.rules);
    to.output = output_file(config);
    if (config.make_rules) to.made_rules = std::make_unique<ResultFile>(*config.make_rules);
  });
  return to;
}

std::vector<PreflightRank> gather_ranks(RankGroup& world, const PreflightRank& mine) {
  world.watchdog().enter("gather results");
  std::vector<PreflightRank> ranks;
  for (const auto& text : world.gather(to_wire(mine)))
    ranks.push_back(from_wire<PreflightRank>(text));
  return ranks;
}

/// Measures and returns the judged record at rank 0, and nothing elsewhere.
std::optional<PreflightResult> measure(Session& session, const std::vector<PreflightRule>& rules) {
  wait_for_idle(session, session.world);
  const double start = steady_seconds();
  PreflightFacts facts;
  facts.world_size = session.world.size();
  facts.device = session.device->device().is_cuda() ? "cuda" : "cpu";
  facts.device_name = session.device->name();
  facts.allocator = allocator_name();
  facts.started_at = utc_timestamp();
  const NoiseSnapshot before = noise_snapshot();
  const ErrorCounters counters = read_error_counters();
  PreflightRank mine = measure_rank(session);
  if (session.config().pinning)
    facts.collectives = Unknown{"--pinning measures nothing"};
  else if (session.world.size() == 1)
    facts.collectives = Unknown{"one rank has nobody to communicate with"};
  else
    facts.collectives = measure_collectives(session);
  if (!session.config().pinning && session.world.size() > 1) facts.pairs = measure_pairs(session);
  mine.report.noise = noise_between(before, noise_snapshot());
  if (mine.host) mine.host->risen_counters = risen(counters, read_error_counters());
  const auto ranks = gather_ranks(session.world, mine);
  facts.wall_seconds = steady_seconds() - start;
  if (!session.is_root()) return std::nullopt;
  PreflightResult record =
      make_preflight_record(session.record_context(session.loaded), facts, ranks);
  apply_preflight_rules(record, ranks, rules);
  return record;
}

void write_rules(Session& session, ResultFile& file, const PreflightResult& record) {
  if (record.verdict == CheckStatus::fail)
    return session.say("no rules are made from nodes that fail: " + file.path().string());
  file.write(make_preflight_rules(
      preflight_values(record), session.config().rules_margin,
      fmt::format("Made by scalemark preflight on {}, {} ranks, margin {}", record.created_at,
                  record.world_size, session.config().rules_margin)));
  session.say("rules: " + file.path().string());
}

ExitCode publish_checks(Session& session, const Destination& to,
                        const std::optional<PreflightResult>& record) {
  return publish_at_root(session, [&] {
    deliver(judged_json(*record), to.output.get(), session.config().json);
    if (to.made_rules) write_rules(session, *to.made_rules, *record);
    if (!session.config().json)
      (to.output ? print_view : print_data)(session.config().pinning ? pinning_table(*record)
                                                                     : preflight_table(*record));
    if (to.output) session.say("record: " + to.output->path().string());
    return record->verdict == CheckStatus::fail ? ExitCode::failed : ExitCode::ok;
  });
}

}  // namespace

ExitCode preflight_command(Session& session) {
  const Destination to = open_destination(session);
  const auto leave = [&](int exit_code, const std::string& message) {
    const Outcome outcome{stop_requested() ? Status::interrupted : status_of_exit(exit_code),
                          message};
    if (to.output)
      to.output->write(make_failed_preflight_record(session.record_context(session.loaded),
                                                    session.world.size(), outcome));
  };
  return recording_failures(
      session, leave, [&] { return publish_checks(session, to, measure(session, to.rules)); });
}

}  // namespace scalemark
