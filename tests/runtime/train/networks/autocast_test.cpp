#include "runtime/train/networks/autocast.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/square.h>
#include <doctest/doctest.h>

#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace autocast_test {

/// What a product of float32 matrices gives here and now.
at::ScalarType type_of_product() {
  return at::mm(at::ones({2, 2}), at::ones({2, 2})).scalar_type();
}

/// Tells in which types everything is computed.
class TestTypes : public Iterator {
 public:
  explicit TestTypes(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor output = model_->forward(batch["image"]);
    seen().set(get_split() + "/step_op", output.scalar_type());
    StepOps ops;
    ops.train_op = [=, this] {
      seen().set("train_op", type_of_product());
      output.register_hook([](const at::Tensor& gradient) {
        seen().set("gradient of the output", gradient.scalar_type());
        seen().set("backward", type_of_product());
      });
      update_.step(at::square(output).mean());
    };
    ops.log_op = [] {
      seen().set("log_op", type_of_product());
      return Logs{};
    };
    ops.eval_op = [=] {
      seen().set("eval_op", type_of_product());
      return EvalOutputs{.outputs = {{"output", output}}};
    };
    return ops;
  }

  static OrderedMap<at::ScalarType>& seen() {
    static OrderedMap<at::ScalarType> types;
    return types;
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
};
STEPOP_REGISTER_ITERATOR(TestTypes, {"For tests.", {}});

std::string config_of(const std::string& precision) {
  return trainer_config("num_steps: 2\nlog_freq: 1\nprecision: " + precision);
}

std::string of_types(const std::string& precision) {
  return R"(
iterator: TestTypes
device: cpu
model: {class: MLP, inputs: 9, hidden: [6], classes: 3}
datasets:
  train: {class: Synthetic, size: 16, shape: [1, 3, 3], classes: 3}
  validation: {class: Synthetic, size: 8, shape: [1, 3, 3], classes: 3}
batch_size: 8
num_steps: 2
log_freq: 1
optimizer: {class: SGD, lr: 1}
num_threads: 1
n_data_processes: 0
precision: )" +
         precision;
}

TEST_CASE("ops compute in half precision, and the way back and the weights do not") {
  std::string precision;
  SUBCASE("bfloat16") { precision = "bfloat16"; }
  SUBCASE("float16") { precision = "float16"; }
  const at::ScalarType half = precision == "float16" ? at::kHalf : at::kBFloat16;
  TestTypes::seen().clear();
  TestRun run(of_types(precision));
  run.session.check();
  run.train();
  const auto& seen = TestTypes::seen();
  for (const char* part : {"train/step_op", "validation/step_op", "train_op", "log_op", "eval_op",
                           "gradient of the output"}) {
    CAPTURE(part);
    CHECK((seen.at(part) == half));
  }
  CHECK((seen.at("backward") == at::kFloat));
  CHECK((type_of_product() == at::kFloat));
  for (const auto& [name, tensor] : run.checkpoint(2)) {
    CAPTURE(name);
    CHECK((tensor.scalar_type() != half));
  }
}

TEST_CASE("a part within half precision computes in float32") {
  const AutocastGuard half(Precision::kBfloat16, c10::kCPU);
  CHECK((type_of_product() == at::kBFloat16));
  {
    const AutocastGuard part(Precision::kFloat32, c10::kCPU);
    CHECK((type_of_product() == at::kFloat));
  }
  CHECK((type_of_product() == at::kBFloat16));
}

TEST_CASE("without precision everything is float32") {
  TestTypes::seen().clear();
  TestRun run(of_types("float32"));
  run.train();
  for (const auto& [part, type] : TestTypes::seen()) {
    CAPTURE(part);
    CHECK((type == at::kFloat));
  }
}

// It fails when LibTorch keeps converted weights from one op to the next.
TEST_CASE("a run in bfloat16 that was stopped ends with the bits of one that was not") {
  const std::string yaml = config_of("bfloat16") + "ckpt_freq: 1\ncheckpoints: {keep_last: 9}\n";
  TestRun whole(yaml);
  whole.train();
  TestRun float32(config_of("float32"));
  float32.train();
  CHECK(differences(whole.checkpoint(2), float32.checkpoint(2)) != "");

  const State end = whole.checkpoint(2);
  TestRun rest(yaml, whole, 1);
  rest.train();
  CHECK(differences(end, rest.checkpoint(2)) == "");
}

TEST_CASE("a precision that there is not is told, with the name that is meant") {
  const auto message = [](const std::string& precision) {
    return message_of([&] { TestRun run(config_of(precision)); });
  };
  CHECK(message("double").find("precision: expected float32, bfloat16 or float16, found "
                               "\"double\"") != std::string::npos);
  CHECK(message("16-mixed").find("; did you mean float16?") != std::string::npos);
  CHECK(message("16").find("; did you mean float16?") != std::string::npos);
  CHECK(message("bf16-mixed").find("; did you mean bfloat16?") != std::string::npos);
  CHECK(message("32").find("found 32; did you mean float32?") != std::string::npos);
}

}  // namespace autocast_test
}  // namespace stepop
