// Networks of torch.export: each beside what Python computes with it, and damaged files.
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "error.hpp"
#include "models/exported_network.hpp"
#include "models/model.hpp"
#include "support/test_folder.hpp"

namespace scalemark::exported_model_test {
namespace {
using nlohmann::json;
using testing::HasSubstr;

double difference(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) return 1;
  const at::Tensor largest = expected.abs().max().clamp_min(1e-30);
  return ((found - expected).abs().max() / largest).item<double>();
}

std::vector<at::Tensor> tensors_of(const c10::IValue& list) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& one : list.toListRef()) tensors.push_back(one.toTensor());
  return tensors;
}

/// Compares the network of `path` with the values that tests/programs/exported_values.py wrote.
void expect_equal(const std::filesystem::path& path) {
  std::ifstream file(std::filesystem::path(path).replace_extension(".values.pt"), std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto values = torch::pickle_load(bytes).toTupleRef().elements().vec();
  const std::vector<at::Tensor> inputs = tensors_of(values[0]);
  ModelOptions options;
  options.file = path;
  options.channels_last = false;
  const auto model = make_model(options);
  model->train(false);
  Batch batch;
  batch.inputs = inputs.front();
  batch.more_inputs.assign(inputs.begin() + 1, inputs.end());
  const at::Tensor output = model->forward(batch);
  const at::Tensor weights = at::cos(at::arange(output.numel(), output.options())).view_as(output);
  (output * weights).sum().backward();
  const double of_output = difference(output, values[1].toTensor());
  double of_gradients = 0;
  const c10::List<c10::IValue> names = values[2].toList();
  const std::vector<at::Tensor> gradients = tensors_of(values[3]);
  ASSERT_EQ(model->parameters().size(), gradients.size());
  std::size_t compared = 0;
  for (const auto& parameter : model->named_parameters()) {
    const std::string name = parameter.key().substr(parameter.key().find('_') + 1);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (names.get(i).toStringRef() == name) {
        ASSERT_TRUE(parameter.value().grad().defined()) << name;
        ++compared;
        of_gradients = std::max(of_gradients, difference(parameter.value().grad(), gradients[i]));
      }
  }
  ASSERT_EQ(compared, gradients.size());
  const bool exact = output.scalar_type() == at::kDouble;
  EXPECT_LT(of_output, exact ? 1e-12 : 1e-4) << path;
  EXPECT_LT(of_gradients, exact ? 1e-12 : 1e-3) << path;
  std::cout << path.stem().string() << ": output " << of_output << ", gradients " << of_gradients
            << std::endl;
}

TEST(ExportedModel, EqualsPython) {
  const char* const folder = std::getenv("SCALEMARK_EXPORTED");
  if (folder == nullptr) GTEST_SKIP() << "tests/programs/own_model_test.py writes the networks";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pt2") expect_equal(entry.path());
}

/// A file as torch.export.save writes it: relu(x * weight), whose parts a test may change.
struct File {
  json program = json::parse(R"json({
    "graph_module": {
      "graph": {
        "inputs": [{"as_tensor": {"name": "p_weight"}}, {"as_tensor": {"name": "x"}}],
        "outputs": [{"as_tensor": {"name": "relu"}}],
        "nodes": [
          {"target": "torch.ops.aten.mul.Tensor",
           "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
                      {"name": "other", "arg": {"as_tensor": {"name": "p_weight"}}, "kind": 1}],
           "outputs": [{"as_tensor": {"name": "mul"}}],
           "metadata": {"stack_trace": "  File \"/home/net.py\", line 7, in forward\n    x * w\n"}},
          {"target": "torch.ops.aten.relu.default",
           "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "mul"}}, "kind": 1}],
           "outputs": [{"as_tensor": {"name": "relu"}}], "metadata": {}}],
        "tensor_values": {
          "x": {"dtype": 7, "sizes": [{"as_expr": {"expr_str":
                 "Symbol('s7', positive=True, integer=True)", "hint": {"as_int": 4}}},
                 {"as_int": 3}],
                "requires_grad": false, "device": {"type": "cpu", "index": null},
                "strides": [{"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0},
                "layout": 7}},
        "sym_int_values": {}, "sym_bool_values": {}},
      "signature": {
        "input_specs": [
          {"parameter": {"arg": {"name": "p_weight"}, "parameter_name": "weight"}},
          {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
        "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "relu"}}}}]},
      "module_call_graph": []},
    "opset_version": {"aten": 10}, "range_constraints": {"s7": {"min_val": 1, "max_val": 8}},
    "schema_version": {"major": 8, "minor": 17}, "verifiers": [], "torch_version": "2.11.0"})json");
  json weights = json::parse(R"json({"config": {"weight": {
    "path_name": "weight_0", "is_param": true, "use_pickle": false,
    "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 3}], "requires_grad": true,
      "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 1}],
      "storage_offset": {"as_int": 0}, "layout": 7}}}})json");
  std::string model = "models/model.json";
  json& node(std::size_t i) { return program["graph_module"]["graph"]["nodes"][i]; }
  json& meta() { return weights["config"]["weight"]["tensor_meta"]; }

  void write(const std::string& path) const {
    caffe2::serialize::PyTorchStreamWriter zip(path);
    const auto put = [&](const std::string& name, const std::string& text) {
      zip.writeRecord(name, text.data(), text.size());
    };
    const float values[] = {1, -2, 3};
    put("data/weights/weight_0", {reinterpret_cast<const char*>(values), sizeof(values)});
    put("data/weights/model_weights_config.json", weights.dump());
    put("data/constants/model_constants_config.json", R"({"config": {}})");
    put(model, program.dump());
    put("archive_format", "pt2");
    zip.writeEndOfFile();
  }
};

class ExportedFile : public testing::Test {
 protected:
  std::shared_ptr<Model> model_of(const File& file) {
    file.write(path_);
    ModelOptions options;
    options.file = path_;
    return make_model(options);
  }
  /// Of making the model, its first batch and a pass over it.
  std::string refusal(const File& file, ExitCode code) {
    try {
      const auto model = model_of(file);
      model->forward(model->synthetic_batch(2, 7, at::kCPU, at::kFloat));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no refusal";
  }
  TestFolder folder_;
  std::string path_ = folder_.path() / "net.pt2";
};

TEST_F(ExportedFile, IsTrained) {
  const auto model = model_of({});
  const Batch batch = model->synthetic_batch(5, 7, at::kCPU, at::kFloat);
  const at::Tensor weight = at::tensor({1.F, -2.F, 3.F});
  EXPECT_TRUE(model->forward(batch).equal(at::relu(batch.inputs * weight)));
  model->loss_sum(batch).backward();
  EXPECT_TRUE(model->parameters().at(0).grad().defined());
  // The trainer moves weights into its buckets: the graph must follow.
  const at::NoGradGuard no_grad;
  at::Tensor(model->parameters()[0]).set_data(at::zeros({3}));
  EXPECT_EQ(model->forward(batch).abs().max().item<double>(), 0);
}

TEST_F(ExportedFile, BatchesOutsideItsRangeAreRefused) {
  const auto model = model_of({});
  EXPECT_EQ(model->possible_batch(1), 1);
  EXPECT_EQ(model->possible_batch(100), 8);
  const Batch batch = model->synthetic_batch(9, 7, at::kCPU, at::kFloat);
  EXPECT_THROW(model->forward(batch), ConfigError);
}

TEST_F(ExportedFile, WhatCannotBeRunIsNamedWithItsPlace) {
  File file;
  file.node(0)["target"] = "torch.ops.mine.multiply.default";
  EXPECT_THAT(refusal(file, ExitCode::usage),
              testing::AllOf(HasSubstr("torch.ops.mine.multiply.default"), HasSubstr("node mul"),
                             HasSubstr("line 7 of net.py")));
  file = {};
  file.node(1)["target"] = "torch.ops.higher_order.cond";
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("higher_order.cond"));
  file = {};
  file.node(1)["target"] = "_operator.matmul";
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("_operator.matmul"));
  file = {};
  file.weights["config"]["weight"]["use_pickle"] = true;
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("subclass of torch.Tensor"));
  file = {};
  file.model = "data/aotinductor/model/net.so";
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("AOTInductor"));
}

TEST_F(ExportedFile, OperatorsThatFailOrTakeOtherTypesAreNamed) {
  File file;
  file.program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][1]["as_int"] = 4;
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("aten.mul.Tensor (node mul"));
  file = {};
  file.node(1)["target"] = "torch.ops.aten.add.Tensor";
  file.node(1)["inputs"].push_back({{"name", "other"}, {"arg", {{"as_string", "text"}}}});
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("its argument other is str"));
}

TEST_F(ExportedFile, DamagedOnesAreRefused) {
  const auto expect = [&](const std::string& words, const auto& damage) {
    File file;
    damage(file);
    EXPECT_THAT(refusal(file, ExitCode::result), HasSubstr(words));
  };
  expect("version 9.0", [](File& f) {
    f.program["schema_version"] = {{"major", 9}, {"minor", 0}};
  });
  expect("is damaged", [](File& f) { f.program = json::array(); });
  expect("is damaged", [](File& f) { f.program["graph_module"]["graph"]["nodes"] = "none"; });
  expect("needs \"lost\", which nothing gives",
         [](File& f) { f.node(1)["inputs"][0]["arg"]["as_tensor"]["name"] = "lost"; });
  expect("lacks its argument other", [](File& f) { f.node(0)["inputs"].erase(1); });
  expect("gives 2 values",
         [](File& f) { f.node(0)["outputs"].push_back(f.node(1)["outputs"][0]); });
  expect("needs 400 bytes, and data/weights/weight_0 has 12",
         [](File& f) { f.meta()["sizes"][0]["as_int"] = 100; });
  expect("negative", [](File& f) { f.meta()["sizes"][0]["as_int"] = -3; });
  expect("is damaged", [](File& f) {
    f.meta()["sizes"] = {{{"as_int", 1LL << 40}}, {{"as_int", 1LL << 40}}};
    f.meta()["strides"] = {{{"as_int", 1LL << 40}}, {{"as_int", 1}}};
  });
  expect("data type 99", [](File& f) { f.meta()["dtype"] = 99; });
  expect("weight_9 is missing",
         [](File& f) { f.weights["config"]["weight"]["path_name"] = "weight_9"; });
  expect("nested too deeply", [](File& f) {
    json deep;
    for (int i = 0; i < 5000; ++i) deep = json::array({std::move(deep)});
    f.program["guards_code"] = std::move(deep);
  });
}

TEST_F(ExportedFile, SizesAreComputedAsInPython) {
  // relu(mul.view([s // 2 * 2 + s % 2, -1])) with s = x.size(0).
  File file;
  auto& graph = file.program["graph_module"]["graph"];
  const auto symbol = [](const std::string& target, json inputs, const std::string& name) {
    return json{{"target", target},
                {"inputs", std::move(inputs)},
                {"metadata", json::object()},
                {"outputs", {{{"as_sym_int", {{"as_name", name}}}}}}};
  };
  const auto named = [](const std::string& name) {
    return json{{"name", "a"}, {"arg", {{"as_sym_int", {{"as_name", name}}}}}};
  };
  const auto integer = [](std::int64_t value) {
    return json{{"name", "b"}, {"arg", {{"as_int", value}}}};
  };
  const json mul = graph["nodes"][0], relu = graph["nodes"][1];
  json size = symbol("torch.ops.aten.sym_size.int", {mul["inputs"][0], {}}, "s");
  size["inputs"][1] = {{"name", "dim"}, {"arg", {{"as_int", 0}}}};
  json view = relu;
  view["target"] = "torch.ops.aten.view.default";
  view["inputs"].push_back(
      {{"name", "size"}, {"arg", {{"as_sym_ints", {{{"as_name", "sum"}}, {{"as_int", -1}}}}}}});
  view["outputs"] = {{{"as_tensor", {{"name", "view"}}}}};
  json last = relu;
  last["inputs"][0]["arg"]["as_tensor"]["name"] = "view";
  graph["nodes"] = {mul,
                    size,
                    symbol("_operator.floordiv", {named("s"), integer(2)}, "half"),
                    symbol("_operator.mul", {named("half"), integer(2)}, "even"),
                    symbol("_operator.mod", {named("s"), integer(2)}, "rest"),
                    symbol("_operator.add", {named("even"), named("rest")}, "sum"),
                    view,
                    last};
  const auto model = model_of(file);
  EXPECT_EQ(model->forward(model->synthetic_batch(5, 7, at::kCPU, at::kFloat)).sizes(),
            (at::IntArrayRef{5, 3}));
  graph["nodes"][2]["inputs"][1]["arg"]["as_int"] = 0;
  EXPECT_THAT(refusal(file, ExitCode::usage), HasSubstr("division by zero"));
}

}  // namespace
}  // namespace scalemark::exported_model_test
