// Defines one linear layer on the image's mean colour: it has almost no arithmetic, so the time of
// a step is the overhead of the loop.
#include "models/task_models.hpp"

namespace scalemark {
namespace {

class Trivial : public ImageModel {
 public:
  explicit Trivial(const ModelOptions& options) : ImageModel(options) {
    classifier_ = register_module("classifier",
                                  std::make_shared<Linear>(gate_holder_, 3, options.num_classes));
  }

  at::Tensor forward(const Batch& batch) override {
    return to_fp32(classifier_->forward(batch.inputs.mean({2, 3})));
  }

 private:
  std::shared_ptr<Linear> classifier_;
};

}  // namespace

std::shared_ptr<Model> make_trivial(const ModelOptions& options) {
  return std::make_shared<Trivial>(options);
}

}  // namespace scalemark
