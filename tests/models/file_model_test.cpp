// Networks from files of TorchScript, written here: as good as one of the catalog, or refused with
// the file's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <fstream>

#include "error.hpp"
#include "models/model.hpp"
#include "support/test_folder.hpp"

namespace scalemark::file_model_test {
namespace {
using testing::HasSubstr;

class FileModelTest : public testing::Test {
 protected:
  /// A network of one 4 x 3 matrix; `body`: what forward(x) does with it.
  ModelOptions net(const std::string& body) {
    torch::manual_seed(3);
    torch::jit::Module module("net");
    module.register_parameter("weight", torch::randn({4, 3}).set_requires_grad(true), false);
    module.define("def forward(self, x):\n" + body);
    ModelOptions options;
    options.file = folder_.path() / "net.pt";
    options.input_shape = {3};
    module.save(options.file);
    return options;
  }
  static Batch batch_of(Model& model, std::int64_t size) {
    return model.synthetic_batch(size, 7, at::kCPU, at::kFloat);
  }
  /// Of making the model and its first batch.
  static std::string refusal(const ModelOptions& options) {
    try {
      batch_of(*make_model(options), 2);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  TestFolder folder_;
};

const std::string kLinear = "    return torch.matmul(x, self.weight.t())\n";

TEST_F(FileModelTest, TrainsAsTheSameNetworkOfTheCatalogWould) {
  const auto model = make_model(net(kLinear));
  const Batch batch = batch_of(*model, 5);
  EXPECT_EQ(batch.units, 5);
  EXPECT_EQ(batch.loss_count, 5);
  ASSERT_EQ(model->parameters().size(), 1U);
  const at::Tensor weight = model->parameters()[0];
  const at::Tensor loss = model->loss_sum(batch);
  const at::Tensor expected = at::cross_entropy_loss(batch.inputs.matmul(weight.detach().t()),
                                                     batch.targets, {}, at::Reduction::Sum);
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5);
  loss.backward();
  ASSERT_TRUE(weight.grad().defined());
  // The trainer moves weights into its buckets: the module must follow.
  const at::NoGradGuard no_grad;
  at::Tensor moved = at::zeros({4, 3});
  at::Tensor(weight).set_data(moved);
  EXPECT_EQ(model->forward(batch).abs().max().item<double>(), 0);
}

TEST_F(FileModelTest, MeanSquaredErrorAndALossOfItsOwnAreSumsOverSamples) {
  ModelOptions options = net(kLinear);
  options.file_loss = FileLoss::mse;
  const auto mse = make_model(options);
  const Batch batch = batch_of(*mse, 6);
  EXPECT_NEAR(mse->loss_sum(batch).item<double>(),
              6 * at::mse_loss(mse->forward(batch), batch.targets).item<double>(), 1e-5);

  options = net("    return torch.matmul(x, self.weight.t()).pow(2).mean()\n");
  options.file_loss = FileLoss::own;
  const auto own = make_model(options);
  EXPECT_NEAR(own->loss_sum(batch).item<double>(), 6 * own->forward(batch).item<double>(), 1e-5);
}

TEST_F(FileModelTest, TokensAndAPredictionForEach) {
  ModelOptions options = net("    return self.weight[x]\n");
  options.input_shape = {8};
  options.integer_inputs = true;
  options.num_classes = 4;
  const auto model = make_model(options);
  const Batch batch = batch_of(*model, 2);
  EXPECT_EQ(batch.inputs.scalar_type(), at::kLong);
  EXPECT_EQ(batch.targets.sizes(), (at::IntArrayRef{2, 8}));
  EXPECT_EQ(batch.loss_count, 16);
  EXPECT_EQ(batch.units, 2);
  EXPECT_LT(batch.targets.max().item<std::int64_t>(), 3);  // classes are the last dimension
}

TEST_F(FileModelTest, ProductsAreInTheComputeDtypeAndWeightsStay) {
  const auto model =
      make_model(net("    y = torch.matmul(x, self.weight.t())\n"
                     "    assert y.dtype == 15\n    return y\n"));
  const Batch batch = model->synthetic_batch(2, 7, at::kCPU, at::kBFloat16);
  EXPECT_EQ(model->forward(batch).scalar_type(), at::kFloat);
  EXPECT_EQ(model->parameters()[0].scalar_type(), at::kFloat);
}

TEST_F(FileModelTest, WhatIsNoNetworkIsRefusedByName) {
  ModelOptions options = net(kLinear);
  options.input_shape = {5};
  EXPECT_THAT(refusal(options), testing::AllOf(HasSubstr("net.pt"), HasSubstr("shape 2x5 fails")));
  EXPECT_THAT(refusal(net("    return [x]\n")), HasSubstr("gives no tensor"));
  EXPECT_THAT(refusal(net("    return torch.matmul(x, self.weight.t()).sum()\n")),
              HasSubstr("need one row a sample"));
  options = net(kLinear);
  options.file_loss = FileLoss::own;
  EXPECT_THAT(refusal(options), HasSubstr("own needs one number"));
  std::ofstream(options.file) << "text";
  EXPECT_THAT(refusal(options), HasSubstr("nor a TorchScript module"));
}

}  // namespace
}  // namespace scalemark::file_model_test
