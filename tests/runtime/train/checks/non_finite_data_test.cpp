#include "runtime/train/checks/non_finite_data.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <limits>

#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace non_finite_data_test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("data that are not finite are named by key and example") {
  const auto text = [](OrderedMap<at::Tensor> tensors) {
    return non_finite_data(Batch(std::move(tensors), {}, {40, 57, 3}));
  };
  at::Tensor image = at::zeros({3, 1, 2, 2});
  CHECK(text({{"image", image}, {"class", at::zeros({3}, at::kLong)}}) == "");
  image[1][0][1][0] = kNan;
  CHECK(text({{"image", image}}) == "image of example 57 has NaN");
  image[2][0][0][0] = kInfinity;
  CHECK(text({{"image", image}, {"x", at::tensor({0.0F, 1.0F, -kInfinity})}}) ==
        "image of examples 57, 3 have NaN, x of example 3 has infinity");
  // A tensor that the dataset collates in its own way has no row for each example.
  CHECK(text({{"mask", at::tensor({0.0F, kNan})}}) == "mask has NaN");
}

/// Images with a NaN in example 5.
class TestNanImages : public Dataset {
 public:
  explicit TestNanImages(const Config& params) : size_(params.get<int64_t>("size")) {}
  int64_t size() const override { return size_; }
  Example get(int64_t index, Random& random) const override {
    const float value = index == 5 ? kNan : static_cast<float>(random.uniform());
    return {.tensors = {{"image", at::tensor({value, 0.5F}).view({1, 1, 2})},
                        {"class", at::scalar_tensor(index % 2, at::kLong)}},
            .texts = {}};
  }

 private:
  int64_t size_;
};
STEPOP_REGISTER_DATASET(TestNanImages, {"For tests.", {{"size", "", "number of examples"}}});

std::string config(const std::string& more) {
  return R"(
iterator: Classifier
device: cpu
model: {class: MLP, inputs: 2, hidden: [], classes: 2}
datasets: {train: {class: TestNanImages, size: 8}}
optimizer: {class: SGD, lr: 0.1}
n_data_processes: 0
num_steps: 4
)" + more;
}

TEST_CASE("a NaN in the data ends a training by its name, before any advice on learning rates") {
  for (const char* accumulate : {"", "accumulate: 2\n"}) {
    CAPTURE(accumulate);
    TestRun run(config(std::string("batch_size: 2\n") + accumulate));
    const std::string message = message_of([&] { run.train(); });
    CHECK(message.starts_with(
        "test.yaml:5: datasets/train: image of example 5 has NaN\noptimizer: nan in the loss in "
        "step "));
  }
}

TEST_CASE("a NaN in the first batch of a split is a warning before the run has a folder") {
  TestRun run(config("batch_size: 8"));
  run.session.check();
  CHECK(run.session.warnings() == "test.yaml:5: datasets/train: image of example 5 has NaN");
}

}  // namespace non_finite_data_test
}  // namespace stepop
