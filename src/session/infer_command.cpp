// `scalemark infer`: replicas of one model, one a rank, asked at the same time.
#include <memory>

#include "measure/clock.hpp"
#include "models/catalog.hpp"
#include "report/console.hpp"
#include "result/inference_record.hpp"
#include "result/preflight_reference.hpp"
#include "session/batch_choice.hpp"
#include "session/commands.hpp"
#include "session/measured_run.hpp"
#include "session/publish.hpp"
#include "session/step_printer.hpp"
#include "train/inferencer.hpp"

namespace scalemark {
namespace {

InferenceFacts inference_facts(const Session& session, const Inferencer& inferencer,
                               const BatchPlan& batch) {
  const RunConfig& config = session.config();
  InferenceFacts facts;
  facts.unit = find_model(config.model)->unit;
  facts.world_size = session.world.size();
  facts.units_per_step = inferencer.units_per_query() * facts.world_size;
  facts.batch = batch;
  facts.batch_search = session.batch_search;
  facts.device = session.device->device().is_cuda() ? "cuda" : "cpu";
  facts.device_name = session.device->name();
  facts.allocator = allocator_name();
  facts.precision_native = session.device->native(config.precision);
  facts.parameters = inferencer.parameter_count();
  facts.flops_per_sample = forward_flops_per_sample(config);
  facts.fused = inferencer.fused();
  return facts;
}

/// The measured loop and everything around it that the record needs; the record is at rank 0, null
/// elsewhere.
Json measure(Session& session, Inferencer& inferencer, const BatchPlan& batch,
             const StepObserver& observer) {
  RankGroup& world = session.world;
  InferenceFacts facts = inference_facts(session, inferencer, batch);
  facts.gemm_flops = measure_gemm_roof(session, world);
  facts.started_at = utc_timestamp();
  session.device->reset_peak_memory();
  reset_peak_rss();
  const NoiseSnapshot before = noise_snapshot();
  Samples samples = inferencer.measure(world, observer, session.start_line);
  const NoiseEvidence noise = noise_between(before, noise_snapshot());

  const auto reports =
      gather_reports(world, rank_report(session, world.rank(), std::move(samples), noise));
  if (!session.is_root()) return nullptr;
  Json record = make_inference_record(session.loaded, facts, reports, session.system,
                                      recorded_environment(session.environment));
  attach_preflight(record, session.preflight);
  return record;
}

}  // namespace

ExitCode infer_command(Session& session) {
  const RunConfig& config = session.config();
  RankGroup& world = session.world;
  std::unique_ptr<ResultFile> output;
  world.agree_on([&] {
    if (session.is_root() && config.output) output = std::make_unique<ResultFile>(*config.output);
  });
  const LastWords words([&](int exit_code, const std::string& message) {
    if (!output) return;
    Json record = make_failed_inference_record(session.loaded, world.size(),
                                               status_of_exit(exit_code), message, session.system,
                                               recorded_environment(session.environment));
    attach_preflight(record, session.preflight);
    output->write(record);
  });

  choose_batch(session, /*keeps_weights=*/false);
  const BatchPlan batch = plan_batch(config, world.size());
  world.watchdog().enter("model");
  std::unique_ptr<Inferencer> inferencer;
  world.agree_on([&] {
    inferencer =
        std::make_unique<Inferencer>(config, *session.device, world, batch.batch_size_per_rank);
  });
  if (inferencer->fused() == "folded")
    session.say(
        "warning: oneDNN's fused operators are not to be had on this device: batch normalisation "
        "is folded, the rest runs operator by operator (--fused off folds nothing)");
  StepPrinter printer(session, inferencer->units_per_query() * world.size());
  const Json record = measure(session, *inferencer, batch, printer.observer());
  return publish(session, printer, output.get(), record, inference_summary);
}

}  // namespace scalemark
