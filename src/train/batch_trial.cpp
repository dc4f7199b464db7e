// Runs a few steps with a batch that may be too large, for the search of the largest batch.
#include "measure/clock.hpp"
#include "train/inferencer.hpp"
#include "train/measured_loop.hpp"

namespace scalemark {
namespace {

constexpr int kTrialSteps = 3;

}  // namespace

double Trainer::try_batch(RankGroup& alone, std::int64_t batch_size) {
  Impl& trainer = *impl_;
  const auto let_go = [&trainer] {
    trainer.parameters->set_on_ready([](int) {});
    trainer.micro_batches.clear();
    trainer.batches.clear();
    trainer.plan = {};
  };
  let_go();  // the previous batch must not be held beside this one
  trainer.untouched = false;
  try {
    set_batch({batch_size, batch_size, batch_size});
    const auto communicator = make_communicator(CommunicatorKind::none, alone, -1);
    MeasuredLoop loop(trainer, alone, *communicator, InjectedFault());
    loop.meet_shapes();
    const double begin = steady_seconds();
    // Later steps also encounter the gaps that the first one has left in the heap.
    loop.run(kTrialSteps, "batch search", StoppingRule(std::nullopt, std::nullopt), nullptr);
    const double seconds = (steady_seconds() - begin) / kTrialSteps;
    let_go();
    return seconds;
  } catch (...) {
    let_go();
    throw;
  }
}

double Inferencer::try_batch(std::int64_t batch_size) {
  const c10::InferenceMode inference;
  queries_.clear();
  try {
    queries_ = make_queries(batch_size);
    if (device_.works_behind_host()) {  // the libraries choose their kernels
      model_->forward(queries_.front());
      device_.synchronize();
    }
    const double begin = steady_seconds();
    for (int i = 0; i < kTrialSteps; ++i) model_->forward(queries_.front());
    device_.synchronize();
    const double seconds = (steady_seconds() - begin) / kTrialSteps;
    queries_.clear();
    return seconds;
  } catch (...) {
    queries_.clear();
    throw;
  }
}

}  // namespace scalemark
