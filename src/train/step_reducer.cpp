// Chooses the reducer of a step, which is done only here, and implements scalemark's own, which
// sums the flat buckets.
#include "train/step_reducer.hpp"

#include "comm/gradient_reducer.hpp"
#include "train/c10d_reducer.hpp"
#include "train/embedding_exchange.hpp"
#include "train/trainer_impl.hpp"

namespace scalemark {
namespace {

class FlatReducer : public StepReducer {
 public:
  FlatReducer(Trainer::Impl& trainer, RankGroup& group, Communicator& communicator)
      : parameters_(trainer.parameters),
        device_(trainer.device),
        reducer_(communicator, parameters_->gradient_buffers(), parameters_->parameters_in(),
                 *trainer.config.overlap, parameters_->first_uses()),
        embeddings_(*parameters_, group, communicator, reducer_) {
    parameters_->set_on_ready([this](int bucket) { reducer_.add(bucket, device_.stream()); });
  }
  ~FlatReducer() override {
    parameters_->set_on_ready([](int) {});
  }

  /// Calls reducer_.add() in the last pass as gradients arrive.
  void begin_pass(bool first, bool last) override {
    if (first) reducer_.begin_step(device_.stream());
    parameters_->begin_pass(first, last);
  }
  void finalize(const std::function<void(std::size_t)>& on_sum) override {
    embeddings_.start(device_.stream());
    reducer_.finalize(device_.stream(), [&](std::size_t bucket) {
      embeddings_.finish(bucket);
      if (on_sum) on_sum(bucket);
    });
    embeddings_.end_step();
  }
  std::vector<Bucket>& buckets() override { return parameters_->buckets(); }
  ReducerSamples take_samples() override {
    return {
        reducer_.log().take(),
        /*waited_in_backward=*/false,
        {reducer_.bytes_per_step(), reducer_.wire_bytes_per_step(), reducer_.messages_per_step()},
        embeddings_.take()};
  }
  void keep_operations() override { reducer_.log().keep_operations(); }

 protected:
  std::shared_ptr<FlatParameters> parameters_;
  DeviceBackend& device_;
  GradientReducer reducer_;
  EmbeddingExchange embeddings_;
};

/// Leaves sums to the next step (--overlap step).
class OverlappingReducer : public FlatReducer, public AsynchronousReducer {
 public:
  using FlatReducer::FlatReducer;

  /// Rows are cleared before the next forward pass, so those that are gathered are waited for.
  void start_rest() override {
    embeddings_.start(device_.stream());
    reducer_.start_rest(device_.stream());
    for (const TableRows& table : parameters_->tables())
      if (table.table.gathered()) complete(static_cast<std::size_t>(table.bucket));
    reducer_.end_step();
    embeddings_.end_step();
  }
  void wait(std::size_t bucket) override { reducer_.wait(bucket); }
  bool is_complete(std::size_t bucket) const override { return reducer_.is_complete(bucket); }

 private:
  void complete(std::size_t bucket) {
    reducer_.wait(bucket);
    embeddings_.finish(bucket);
  }
};

}  // namespace

std::unique_ptr<StepReducer> make_step_reducer(Trainer::Impl& trainer, RankGroup& group,
                                               Communicator& communicator) {
  // A run without communication, the baseline of a curve, uses scalemark's own in both cases.
  if (trainer.config.reducer == Reducer::c10d && communicator.moves_data())
    return make_c10d_reducer(trainer, communicator);
  if (trainer.parameters->division().divides()) return make_sharded_reducer(trainer, communicator);
  if (*trainer.config.overlap == Overlap::step && communicator.moves_data())
    return std::make_unique<OverlappingReducer>(trainer, group, communicator);
  return std::make_unique<FlatReducer>(trainer, group, communicator);
}

}  // namespace scalemark
