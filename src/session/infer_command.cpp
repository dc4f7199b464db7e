// Runs `scalemark infer`: replicas of one model, one per rank, that are asked at the same time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "analysis/diagnosis/diagnose.hpp"
#include "comm/abort.hpp"
#include "config/names.hpp"
#include "measure/clock.hpp"
#include "measure/server.hpp"
#include "measure/statistics.hpp"
#include "record/wire.hpp"
#include "report/console.hpp"
#include "result/inference_record.hpp"
#include "session/announce.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "session/publish.hpp"
#include "session/session.hpp"
#include "session/step_printer.hpp"
#include "session/trace_pass.hpp"
#include "train/inferencer.hpp"

namespace scalemark {
namespace {

// --mode server: queries at agreed rates, and the highest rate that holds the latency bound.

/// Returns one rank's share of the queries of a trial.
std::int64_t queries_of_rank(const ResolvedConfig& config, double rate, int ranks) {
  const double queries =
      std::max(static_cast<double>(*config.min_query_count), rate * config.min_duration);
  return static_cast<std::int64_t>(std::ceil(queries / ranks));
}

ServerPolicy policy_of(const ResolvedConfig& config, std::int64_t arrivals, int ranks) {
  ServerPolicy policy;
  policy.largest_batch = *config.batch_size;
  policy.max_queue_delay = config.max_queue_delay_ms / 1e3;
  policy.overload_queue = overload_queue(arrivals, policy.largest_batch);
  if (config.searches_rate()) {  // a trial that is sure to fail need not run to its end
    policy.latency_bound = *config.latency_bound_ms / 1e3;
    policy.late_allowed = static_cast<std::int64_t>((1 - config.latency_quantile) *
                                                    static_cast<double>(arrivals * ranks));
  }
  return policy;
}

/// Combines what all ranks have seen into one trial, which is the same on all of them.
RateTrial agreed_trial(RankGroup& world, const ResolvedConfig& config, double rate, bool confirms,
                       const Samples& mine) {
  RateTrial trial{rate, confirms};
  std::vector<double> latencies;
  for (const std::string& text : world.all_gather(to_wire(mine))) {
    const Samples samples = from_wire<Samples>(text);
    latencies.insert(latencies.end(), samples.step_seconds.begin(), samples.step_seconds.end());
    trial.queries += samples.server->offered;
    trial.seconds = std::max(trial.seconds, samples.wall_seconds);
    if (trial.ended_by == ServerEnd::all_served) trial.ended_by = samples.server->ended_by;
  }
  trial.answered = static_cast<std::int64_t>(latencies.size());
  if (trial.ended_by != ServerEnd::all_served || latencies.empty()) return trial;
  trial.latency = quantile(latencies, config.latency_quantile);
  trial.holds = config.latency_bound_ms && *trial.latency <= *config.latency_bound_ms / 1e3;
  return trial;
}

std::string trial_words(const RateTrial& trial, const ResolvedConfig& config) {
  const std::string how =
      !trial.latency ? fmt::format("ended after {} of {} queries ({})", trial.answered,
                                   trial.queries, to_string(trial.ended_by))
                     : fmt::format("quantile {:g} of {} queries {} ms", config.latency_quantile,
                                   trial.queries, four_digits(1e3 * *trial.latency));
  return fmt::format("{} queries/s: {}: {}{}", four_digits(trial.arrival_rate), how,
                     trial.holds ? "holds" : "does not hold",
                     trial.confirms ? " when repeated" : "");
}

/// Runs the trials of one job.
class Trials {
 public:
  Trials(Session& session, Inferencer& inferencer, const ResolvedConfig& config)
      : session_(session), inferencer_(inferencer), config_(config) {}

  Samples run(double rate) {
    RankGroup& world = session_.world;
    const std::int64_t queries = queries_of_rank(config_, rate, world.size());
    // Streams of queries differ by rank, and from trial to trial.
    const std::uint64_t seed = static_cast<std::uint64_t>(config_.seed) * 1'000'003 +
                               count_++ * static_cast<std::uint64_t>(world.size()) +
                               static_cast<std::uint64_t>(world.rank());
    const double share = rate / world.size();
    const auto arrivals = poisson_arrivals(share, queries, seed);
    world.watchdog().enter("server");
    world.barrier();
    if (count_ == 1) {
      wait_at(session_.start_barrier, world);
      began_ = steady_seconds();
    }
    Samples samples = inferencer_.serve(world, arrivals, policy_of(config_, queries, world.size()));
    samples.server->arrival_rate = share;
    // A rank that ends early waits for the arrivals of the others.
    Watchdog& watchdog = world.watchdog();
    const double timeout = watchdog.timeout();
    watchdog.set_timeout(timeout + std::max(0., arrivals.back() - samples.wall_seconds));
    watchdog.enter("end of a trial");
    world.barrier();
    watchdog.set_timeout(timeout);
    return samples;
  }

  /// Returns the time from the start line to now.
  Window window() const { return {began_, steady_seconds()}; }

  RateSearch search(double first, double lowest, Samples& counts) {
    return search_rate(first, lowest, [&](double rate, bool confirms) -> std::optional<RateTrial> {
      counts = run(rate);
      const bool stopped = counts.stop_reason == StopReason::signal;
      if (session_.world.all_sum({stopped ? 1. : 0.}).front() > 0) {
        counts.stop_reason = StopReason::signal;
        return std::nullopt;
      }
      const RateTrial trial = agreed_trial(session_.world, config_, rate, confirms, counts);
      session_.say(trial_words(trial, config_));
      return trial;
    });
  }

 private:
  Session& session_;
  Inferencer& inferencer_;
  const ResolvedConfig& config_;
  std::uint64_t count_ = 0;
  double began_ = 0;
};

struct ServedTrials {
  Samples samples;                   ///< of this rank in the trial that counts
  std::optional<RateSearch> search;  ///< without --arrival_rate
};

/// Warms up, then runs one trial at --arrival_rate, or as many as a search takes; of these the one
/// that confirmed the rate counts, or else the last. Each rank is offered an equal share of the
/// rate, in a stream of its own. All ranks call it.
ServedTrials serve_trials(Session& session, Inferencer& inferencer, const ResolvedConfig& config) {
  RankGroup& world = session.world;
  const Inferencer::PassSeconds mine = inferencer.warm_up_server(world);
  Trials trials(session, inferencer, config);
  ServedTrials served;
  if (config.arrival_rate) {
    served.samples = trials.run(*config.arrival_rate);
  } else {
    const auto sums = world.all_sum({mine.one, mine.full});
    // The search begins at half of the rate that full batches would reach.
    const double first = 0.5 * static_cast<double>(*config.batch_size) * world.size() *
                         world.size() / std::max(sums[1], 1e-6);
    // Even without a queue, the latency cannot be shorter than one pass.
    const bool hopeless = sums[0] / world.size() > *config.latency_bound_ms / 1e3;
    served.search = trials.search(first, hopeless ? first : first / 64, served.samples);
  }
  if (session.start_barrier) session.start_barrier->report(trials.window());
  return served;
}

InferenceFacts inference_facts(const Session& session, const Inferencer& inferencer,
                               const MeasuredConfig& measured, const BatchPlan& batch) {
  const ResolvedConfig& config = measured.config();
  InferenceFacts facts;
  facts.unit = unit_of(config);
  facts.world_size = session.world.size();
  facts.units_per_step = inferencer.units_per_query() * facts.world_size;
  facts.batch = batch;
  facts.batch_search = measured.batch_search;
  facts.device = session.device->device().is_cuda() ? "cuda" : "cpu";
  facts.device_name = session.device->name();
  facts.allocator = allocator_name();
  facts.precision_native = session.device->native(config.precision);
  facts.parameters = inferencer.parameter_count();
  facts.flops_per_sample = forward_flops_per_sample(config, inferencer.counted_flops());
  facts.fused = inferencer.fused();
  if (const auto& made = inferencer.quantization())
    facts.quantization = QuantizationFacts{made->layers, made->relative_error};
  return facts;
}

/// Runs the measured loop and everything around it that the record needs. Returns the result at
/// rank 0, and nothing elsewhere.
std::optional<InferenceResult> measure(Session& session, Inferencer& inferencer,
                                       const MeasuredConfig& measured, const BatchPlan& batch,
                                       const StepObserver& observer) {
  RankGroup& world = session.world;
  InferenceFacts facts = inference_facts(session, inferencer, measured, batch);
  const bool server = measured.config().mode == InferenceMode::server;
  facts.gemm_flops = measure_gemm_peak(session, measured.config(), world);
  if (!server)
    announce_time(session, world, measured.config(),
                  facts.flops_per_sample * static_cast<double>(batch.global_batch_size),
                  facts.gemm_flops);
  wait_for_idle(session, world);
  facts.started_at = utc_timestamp();
  session.device->reset_peak_memory();
  reset_peak_rss();
  const NoiseSnapshot before = session.noise_now();
  const auto watch = watch_machine(session, world, measured.config());
  Samples samples;
  if (server) {
    ServedTrials served = serve_trials(session, inferencer, measured.config());
    samples = std::move(served.samples);
    facts.rate_search = std::move(served.search);
  } else {
    samples = inferencer.measure(world, observer, session.start_barrier);
  }
  const NoiseEvidence noise = noise_between(before, session.noise_now());

  std::vector<MachineReading> readings = readings_of(watch.get(), samples);
  RankReport mine = rank_report(session, world.rank(), std::move(samples), noise);
  mine.readings = std::move(readings);
  const auto reports = gather_reports(world, mine);
  if (!session.is_root()) return std::nullopt;
  InferenceResult result = make_inference(session.record_context(measured.loaded), facts, reports);
  diagnosis::add_findings(result);
  return result;
}

}  // namespace

ExitCode infer_command(Session& session) {
  const ResolvedConfig& config = session.config();
  RankGroup& world = session.world;
  std::unique_ptr<ResultFile> output;
  session.agree_on_files([&] {
    if (session.is_root()) output = output_file(config);
  });
  TracePass trace(session, config.trace);
  MeasuredRecord kept(session, output.get());
  MeasuredConfig measured{session.loaded};
  const auto leave = [&](int exit_code, const std::string& message) {
    if (kept.is_kept())
      kept.leave(message);
    else if (output)
      output->write(make_failed_inference_record(session.record_context(measured.loaded),
                                                 world.size(),
                                                 {status_of_exit(exit_code), message}));
  };
  return recording_failures(session, leave, [&] {
    measured = choose_batch(session, session.loaded, /*keeps_weights=*/false);
    const BatchPlan batch = plan_batch(measured.config(), world.size());
    announce_run(session, measured.config(), batch, {world.size()});
    world.watchdog().enter("model");
    std::unique_ptr<Inferencer> inferencer;
    world.agree_on([&] {
      inferencer = std::make_unique<Inferencer>(measured.config(), *session.device, world,
                                                batch.batch_size_per_rank);
    });
    if (inferencer->fused() == "folded")
      session.warn(
          "oneDNN's fused operators are not to be had on this device: batch normalisation "
          "is folded, the rest runs operator by operator (--kernels torch folds nothing)");
    StepPrinter printer(session, world.size(), inferencer->units_per_query() * world.size());
    // The queries of a server wait in a line, so lines in the format of steps would be wrong.
    const bool steps = measured.config().mode != InferenceMode::server;
    std::optional<InferenceResult> result =
        measure(session, *inferencer, measured, batch, steps ? printer.observer() : StepObserver());
    const ExitCode traced = trace.add_to(
        result, kept, world,
        [&](std::int64_t queries, StepTrace& to) { return inferencer->trace(world, queries, to); });
    const ExitCode code = publish(session, printer, output.get(), result, inference_summary);
    return code == ExitCode::ok ? traced : code;
  });
}

}  // namespace scalemark
