// Runs `scalemark infer`: replicas of one model, one per rank, that are asked at the same time.
#include <memory>
#include <optional>

#include "analysis/diagnosis/diagnose.hpp"
#include "comm/abort.hpp"
#include "measure/clock.hpp"
#include "report/console.hpp"
#include "result/inference_record.hpp"
#include "session/announce.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "session/publish.hpp"
#include "session/server_trials.hpp"
#include "session/step_printer.hpp"
#include "session/trace_pass.hpp"
#include "train/inferencer.hpp"

namespace scalemark {
namespace {

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
