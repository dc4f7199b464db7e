// One linear layer on the image's mean colour: next to no arithmetic, so a step's time is the
// overhead of the loop.
#include "models/layers.hpp"
#include "models/learnable.hpp"

namespace scalemark {
namespace {

class Trivial : public Model {
 public:
  explicit Trivial(const ModelOptions& options) : options_(options) {
    classifier_ = register_module("classifier",
                                  std::make_shared<Linear>(gate_holder_, 3, options.num_classes));
  }

  Batch synthetic_batch(std::int64_t batch_size, std::uint64_t seed, at::Device device,
                        at::ScalarType dtype) override {
    return synthetic_images(options_, batch_size, seed, device, dtype);
  }

  Batch learnable_batch(const SampleRange& samples, std::uint64_t seed, at::Device device,
                        at::ScalarType dtype) override {
    return learnable_images(options_, samples, seed, device, dtype);
  }

  at::Tensor loss_sum(const Batch& batch) override {
    return cross_entropy_sum(forward(batch), batch.targets);
  }

  at::Tensor forward(const Batch& batch) override {
    return to_fp32(classifier_->forward(batch.inputs.mean({2, 3})));
  }

 private:
  ModelOptions options_;
  std::shared_ptr<Linear> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_trivial(const ModelOptions& options) {
  return std::make_shared<Trivial>(options);
}

}  // namespace scalemark
