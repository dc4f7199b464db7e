// Traces steps after a measurement, aligns the clocks of the ranks, and writes one file of all
// events.
#include "session/trace_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "config/names.hpp"
#include "measure/clock.hpp"
#include "record/rank_report.hpp"
#include "record/wire.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// A file of all ranks has at most so many events, about 150 bytes each. A browser has trouble with
/// more.
constexpr std::size_t kMostSpans = 1'000'000;
constexpr std::size_t kFewestSpans = 5'000;  ///< per rank, however many ranks there are

std::size_t most_spans_of_rank(int ranks) {
  return std::max(kFewestSpans, kMostSpans / static_cast<std::size_t>(ranks));
}

/// Holds what rank 0 receives from a rank beside its events.
struct TracedRank {
  RankTrace totals;
  std::int64_t events = 0;
  double first_seconds = 0;  ///< when the first of them began, by the clock of rank 0
  double offset_seconds = 0, uncertainty_seconds = 0;
  static void describe(Fields& fields) {
    fields.add("totals", &TracedRank::totals);
    fields.add("events", &TracedRank::events);
    fields.add("first_seconds", &TracedRank::first_seconds);
    fields.add("offset_seconds", &TracedRank::offset_seconds);
    fields.add("uncertainty_seconds", &TracedRank::uncertainty_seconds);
  }
};

std::vector<TracedRank> gather_totals(RankGroup& ranks, const RankTrace& mine,
                                      const ClockAlignment& clocks) {
  double first = clocks.before.measured_at;
  for (const Span& span : mine.spans) first = std::min(first, clocks.on_rank_0(span.begin));
  const TracedRank me{mine, static_cast<std::int64_t>(mine.spans.size()), first,
                      clocks.before.seconds, clocks.uncertainty_seconds()};
  std::vector<TracedRank> all;
  for (const std::string& text : ranks.gather(to_wire(me)))
    all.push_back(from_wire<TracedRank>(text));
  return all;
}

TraceFacts facts_of(const std::vector<TracedRank>& ranks, const std::string& path) {
  TraceFacts facts;
  facts.path = path;
  for (const TracedRank& rank : ranks) {
    facts.ranks.push_back(rank.totals);
    facts.events += rank.events;
    facts.clock_uncertainty_seconds =
        std::max(facts.clock_uncertainty_seconds, rank.uncertainty_seconds);
  }
  return facts;
}

/// Returns what the file says about itself.
Json about_trace(const record::Measured& run, const std::vector<TracedRank>& ranks) {
  const Json trace = part_json(*run.trace);
  Json about{{"program", "scalemark"},
             {"record", run.id},
             {"model", run.model},
             {"precision", to_string(run.precision)}};
  for (const char* key : {"steps", "step_seconds", "slowdown", "dropped_events"})
    about[key] = trace.at(key);
  about["clock"] = "of rank 0; the offsets of the others are taken off";
  for (const TracedRank& rank : ranks) {
    about["clock_offset_seconds"].push_back(rank.offset_seconds);
    about["clock_uncertainty_seconds"].push_back(rank.uncertainty_seconds);
  }
  return about;
}

}  // namespace

TracePass::TracePass(Session& session, const std::optional<std::string>& path) : session_(session) {
  session.agree_on_files([&] {
    if (session.is_root() && path) file_ = std::make_unique<TraceFile>(*path);
  });
  const std::int64_t mine = file_ ? session.config().trace_steps : 0;
  steps_ = std::stoll(session.world.broadcast(std::to_string(mine)));
}

ExitCode TracePass::add_to(const Traced& traced, RankGroup& ranks, const Steps& steps) {
  if (!wanted()) return ExitCode::ok;
  record::Measured* run = traced.run;
  const std::string status = ranks.broadcast(run ? to_string(run->status) : "");
  if (status != "ok") {
    if (run) fill_no_trace(*run, "status is " + status + ": nothing was traced");
    return ExitCode::ok;
  }
  try {
    trace(traced, ranks, steps);
    return ExitCode::ok;
  } catch (const AgreedError& error) {
    if (run) {
      fill_no_trace(*run, error.what());
      run->warnings.push_back(std::string("no trace: ") + error.what());
    }
    return error.code();
  }
}

void TracePass::trace(const Traced& traced, RankGroup& ranks, const Steps& steps) {
  const double start = steady_seconds();
  StepTrace trace(*session_.device, most_spans_of_rank(ranks.size()));
  const Samples samples = steps(steps_, trace);
  const RankTrace mine = trace.take(samples);
  const ClockAlignment& clocks = trace.clocks();
  ranks.watchdog().enter("gather trace");
  const std::vector<TracedRank> all = gather_totals(ranks, mine, clocks);
  // Some readers drop what lies before 0, and with --overlap step a bucket may have been sent
  // before the first step began.
  double origin = clocks.before.measured_at;
  for (const TracedRank& rank : all) origin = std::min(origin, rank.first_seconds);
  origin = std::stod(ranks.broadcast(fmt::format("{}", origin)));
  const std::string events =
      trace_events(mine, ranks.rank(), session_.hosts.at(session_.world.rank()),
                   [&](double t) { return clocks.on_rank_0(t) - origin; });
  Json about;
  if (ranks.rank() == 0) {
    TraceFacts facts = facts_of(all, file_->path().string());
    facts.seconds = steady_seconds() - start;
    fill_trace(*traced.run, traced.step_seconds, facts);
    if (traced.run->trace) about = about_trace(*traced.run, all);
  }
  write(ranks, events, about);
}

/// Writes one rank after the other, so that rank 0 never holds the events of more than two.
void TracePass::write(RankGroup& ranks, const std::string& events, const Json& about) {
  const StoragePhase phase(ranks.watchdog());
  std::exception_ptr failure;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    ranks.watchdog().enter("write trace", rank);
    const auto parts = ranks.gather(ranks.rank() == rank ? events : "");
    if (ranks.rank() != 0 || failure) continue;
    try {
      file_->add(parts.at(static_cast<std::size_t>(rank)));
    } catch (const ResultError&) {
      failure = std::current_exception();
    }
  }
  ranks.agree_on([&] {
    if (failure) std::rethrow_exception(failure);
    if (!about.is_null()) file_->finish(about);
  });
}

void MeasuredRecord::keep_untraced(Untraced record) {
  const Json kept = record("the trace pass did not come to its end");
  if (output_) output_->write(kept);
  session_.handover.publish_partial(
      {Json::array({kept}), nullptr, output_ ? output_->path().string() : ""});
  const std::lock_guard lock(mutex_);
  record_ = std::move(record);
}

bool MeasuredRecord::is_kept() const {
  const std::lock_guard lock(mutex_);
  return record_ != nullptr;
}

void MeasuredRecord::leave(const std::string& message) const {
  Untraced record;
  {
    const std::lock_guard lock(mutex_);
    record = record_;
  }
  deliver(record("the trace pass failed: " + message), output_, session_.config().json);
}

}  // namespace scalemark
