#include "runtime/tools/trial/describe.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "runtime/train/networks/network.h"
#include "tests/test_run.h"

namespace stepop {
namespace describe_test {

TEST_CASE("a batch is told by key, type, shape, device and memory") {
  const Batch batch({{"image", at::zeros({2, 3, 8, 8})}, {"class", at::zeros({2}, at::kLong)}},
                    {{"caption", {"a", "b"}}}, {0, 1});
  CHECK(describe_batch(batch) ==
        "batch    tensor                device  memory\n"
        "image    float32 [2, 3, 8, 8]  cpu     1.5 kB\n"
        "class    int64 [2]             cpu       16 B\n"
        "caption  2 texts\n");
}

TEST_CASE("what ops return is told by op, key, kind, type and shape; the last return counts") {
  ReturnedValues values;
  CHECK(values.table() == "");
  values.set("train_op", Scalars{});
  CHECK(values.table() == "");
  values.set("train_op", Scalars{{"old", 1}});
  values.set("train_op", Scalars{{"loss", at::zeros({})}, {"number", 2}});
  values.set("log_op", Logs{.scalars = {{"a", 1}}, .images = {{"input", at::zeros({4, 1, 8, 8})}}});
  const std::vector<at::Tensor> boxes = {at::zeros({3, 4}), at::zeros({0, 4})};
  values.set("eval_op", EvalOutputs{.outputs = {{"logits", at::zeros({2, 10})},
                                                {"boxes", boxes},
                                                {"name", std::vector<std::string>{"x", "y"}}},
                                    .labels = {{"loss", at::zeros({2})}}});
  CHECK(values.table() ==
        "returned by  key     as      tensor\n"
        "train_op     loss    scalar  float32 []\n"
        "train_op     number  scalar  number\n"
        "log_op       a       scalar  number\n"
        "log_op       input   images  float32 [4, 1, 8, 8]\n"
        "eval_op      logits  output  float32 [2, 10]\n"
        "eval_op      boxes   output  2 tensors, the first float32 [3, 4]\n"
        "eval_op      name    output  2 texts\n"
        "eval_op      loss    label   float32 [2]\n");
}

/// Weights [out, in] and, unless it is tied, a bias.
class TestLayerImpl : public torch::nn::Module {
 public:
  TestLayerImpl(int64_t in, int64_t out, bool trainable) {
    weight = register_parameter("weight", at::zeros({out, in}), trainable);
  }
  at::Tensor weight;
};

/// Two layers within a part of its own, a third one that shares the weights of the first, a module
/// without any tensor, and a buffer of int64.
class TestNested : public Network {
 public:
  explicit TestNested(const Config& params) {
    auto first = std::make_shared<TestLayerImpl>(30, 40, true);
    body_->register_module("first", first);
    body_->register_module("frozen", std::make_shared<TestLayerImpl>(10, 5, false));
    body_->register_module("empty", std::make_shared<torch::nn::Module>("Nothing"));
    register_module("body", body_);
    if (params.get("tied", true)) register_module("head", first);
    register_buffer("count", at::zeros({3}, at::kLong));
  }
  at::Tensor forward(const at::Tensor& input) override { return input; }

 private:
  std::shared_ptr<torch::nn::Module> body_ = std::make_shared<torch::nn::Module>("Sequence");
};

STEPOP_REGISTER_MODEL(TestNested, {"For tests.", {{"tied", "true", "with a shared layer"}}});

std::string table_of(const std::string& yaml) {
  Tracker tracker;
  return module_table(Networks(test_config(yaml), c10::kCPU, tracker));
}

TEST_CASE("modules are indented below the one they belong to; what is shared counts once") {
  CHECK(table_of("model: TestNested") ==
        "network     class       trainable  parameters  memory\n"
        "model       TestNested      1,200       1,250  5.0 kB\n"
        "  body      Sequence        1,200       1,250  5.0 kB\n"
        "    first   TestLayer       1,200       1,200  4.8 kB\n"
        "    frozen  TestLayer           0          50   200 B\n"
        "  head      TestLayer       1,200       1,200  4.8 kB\n");
}

TEST_CASE("several networks have a sum") {
  const std::string table =
      table_of("networks: {a: {class: TestNested, tied: false}, b: TestNested}");
  CHECK(table.ends_with("all         " +
                        std::string("                2,400       2,500  10.0 kB\n")));
  CHECK(table.find("\na           TestNested      1,200       1,250   5.0 kB\n") !=
        std::string::npos);
}

TEST_CASE("without a network there is no table") { CHECK(table_of("seed: 1") == ""); }

}  // namespace describe_test
}  // namespace stepop
