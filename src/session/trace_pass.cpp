// See trace_pass.hpp.
#include "session/trace_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "measure/clock.hpp"
#include "record/rank_report.hpp"
#include "record/wire.hpp"
#include "result/trace_record.hpp"
#include "result/warnings.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Of all ranks in a file, about 150 bytes each: more than a browser opens gladly.
constexpr std::size_t kMostSpans = 1'000'000;
constexpr std::size_t kFewestSpans = 5'000;  ///< of a rank, however many there are

std::size_t most_spans_of_rank(int ranks) {
  return std::max(kFewestSpans, kMostSpans / static_cast<std::size_t>(ranks));
}

/// What rank 0 hears of a rank beside its events.
struct TracedRank {
  RankTrace totals;
  std::int64_t events = 0;
  double offset_seconds = 0, uncertainty_seconds = 0;
  static void describe(Fields& fields) {
    fields.add("totals", &TracedRank::totals);
    fields.add("events", &TracedRank::events);
    fields.add("offset_seconds", &TracedRank::offset_seconds);
    fields.add("uncertainty_seconds", &TracedRank::uncertainty_seconds);
  }
};

std::vector<TracedRank> gather_totals(RankGroup& ranks, const RankTrace& mine,
                                      const ClockAlignment& clocks) {
  const TracedRank me{mine, static_cast<std::int64_t>(mine.spans.size()), clocks.before.seconds,
                      clocks.uncertainty_seconds()};
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

/// What the file says of itself.
Json about_trace(const Json& record, const std::vector<TracedRank>& ranks) {
  Json about{{"program", "scalemark"},
             {"record", record.at("id")},
             {"model", record.at("model")},
             {"precision", record.at("precision")},
             {"steps", record.at("trace").at("steps")},
             {"step_seconds", record.at("trace").at("step_seconds")},
             {"slowdown", record.at("trace").at("slowdown")},
             {"dropped_events", record.at("trace").at("dropped_events")},
             {"clock", "of rank 0; the offsets of the others are taken off"}};
  for (const TracedRank& rank : ranks) {
    about["clock_offset_seconds"].push_back(rank.offset_seconds);
    about["clock_uncertainty_seconds"].push_back(rank.uncertainty_seconds);
  }
  return about;
}

}  // namespace

TracePass::TracePass(Session& session, const std::optional<std::string>& path) : session_(session) {
  session.world.agree_on([&] {
    if (session.is_root() && path) file_ = std::make_unique<TraceFile>(*path);
  });
  const std::int64_t mine = file_ ? session.config().trace_steps : 0;
  steps_ = std::stoll(session.world.broadcast(std::to_string(mine)));
}

ExitCode TracePass::add_to(Json& record, MeasuredRecord& kept, RankGroup& ranks,
                           const Steps& steps) {
  return add_to(record, ranks, [&](std::int64_t count, StepTrace& trace) {
    ranks.agree_on([&] {
      if (ranks.rank() == 0) kept.keep(record);
    });
    return steps(count, trace);
  });
}

ExitCode TracePass::add_to(Json& record, RankGroup& ranks, const Steps& steps) {
  if (!wanted()) return ExitCode::ok;
  const bool root = ranks.rank() == 0;
  const std::string status = ranks.broadcast(root ? record["status"].get<std::string>() : "");
  if (status != "ok") {
    if (root) fill_no_trace(record, "status is " + status + ": nothing was traced");
    return ExitCode::ok;
  }
  try {
    trace(record, ranks, steps);
    return ExitCode::ok;
  } catch (const AgreedError& error) {
    if (root) {
      fill_no_trace(record, error.what());
      add_warnings(record, {std::string("no trace: ") + error.what()});
    }
    return error.code();
  }
}

void TracePass::trace(Json& record, RankGroup& ranks, const Steps& steps) {
  const double start = steady_seconds();
  StepTrace trace(*session_.device, most_spans_of_rank(ranks.size()));
  const Samples samples = steps(steps_, trace);
  const RankTrace mine = trace.take(samples);
  const ClockAlignment& clocks = trace.clocks();
  ranks.watchdog().enter("gather trace");
  const std::vector<TracedRank> all = gather_totals(ranks, mine, clocks);
  // By rank 0's clock.
  const double origin = std::stod(ranks.broadcast(fmt::format("{}", clocks.before.measured_at)));
  const std::string events =
      trace_events(mine, ranks.rank(), session_.hosts.at(session_.world.rank()),
                   [&](double t) { return clocks.on_rank_0(t) - origin; });
  Json about;
  if (ranks.rank() == 0) {
    TraceFacts facts = facts_of(all, file_->path().string());
    facts.seconds = steady_seconds() - start;
    fill_trace(record, facts);
    if (!record["trace"].is_null()) about = about_trace(record, all);
  }
  write(ranks, events, record, about);
}

/// One rank after the other, so that rank 0 never holds the events of more than two.
void TracePass::write(RankGroup& ranks, const std::string& events, Json& record,
                      const Json& about) {
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
    if (ranks.rank() == 0 && !record["trace"].is_null()) file_->finish(about);
  });
}

void MeasuredRecord::keep(const Json& record) {
  Json kept = record;
  fill_no_trace(kept, "the trace pass did not come to its end");
  if (output_) output_->write(kept);
  session_.handover.publish_partial(
      {Json::array({kept}), nullptr, output_ ? output_->path() : std::filesystem::path()});
  const std::lock_guard lock(mutex_);
  record_ = std::move(kept);
}

bool MeasuredRecord::is_kept() const {
  const std::lock_guard lock(mutex_);
  return !record_.is_null();
}

void MeasuredRecord::leave(const std::string& message) const {
  Json record;
  {
    const std::lock_guard lock(mutex_);
    record = record_;
  }
  fill_no_trace(record, "the trace pass failed: " + message);
  deliver(record, output_, session_.config().json);
}

}  // namespace scalemark
