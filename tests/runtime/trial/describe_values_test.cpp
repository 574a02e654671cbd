#include "runtime/trial/describe_values.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

namespace stepop {
namespace describe_values_test {

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

}  // namespace describe_values_test
}  // namespace stepop
