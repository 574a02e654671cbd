#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"

namespace stepop {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 30;

/// Noise for trial runs. An example is the same each time it is read.
///
/// Parameters: `size` = 1000, the number of examples; `tensors`, key -> shape, `{lq: [3, 8, 8], hq:
/// [3, 16, 16]}`; `range` = [0, 1]; `seed` = 0. An example holds these tensors, float32 and uniform
/// in the range.
class RandomTensors : public Dataset {
 public:
  explicit RandomTensors(const Config& params)
      : size_(params.get_at_least("size", 1, 1000)),
        range_(params.get("range", std::vector<double>{0, 1})),
        seed_(static_cast<uint64_t>(params.get_at_least("seed", 0, 0))) {
    if (range_.size() != 2 || !(range_[0] < range_[1])) {
      throw params.error("range", "expected two numbers, the first the lower");
    }
    const Config tensors = params.at("tensors");
    for (const auto& key : tensors.keys()) {
      auto shape = tensors.get<std::vector<int64_t>>(key);
      int64_t values = 1;
      for (const int64_t length : shape) {
        if (length < 1 || length > kMostValues / values) {
          throw tensors.error(key, fmt::format("expected lengths of 1 or more, and 2^30 numbers "
                                               "at most, found {}",
                                               tensors.peek(key)->describe()));
        }
        values *= length;
      }
      shapes_.emplace_back(key, std::move(shape));
    }
    if (shapes_.empty()) {
      throw params.error("tensors", "missing: a map of keys and shapes, such as {lq: [3, 8, 8]}");
    }
  }

  int64_t size() const override { return size_; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size_);
    Random random(mix_seed({seed_, static_cast<uint64_t>(index)}));
    Example example;
    for (const auto& [key, shape] : shapes_) {
      at::Tensor tensor = at::empty(shape, at::kFloat);
      auto* values = tensor.mutable_data_ptr<float>();
      for (int64_t i = 0; i < tensor.numel(); ++i) {
        values[i] = static_cast<float>(range_[0] + (range_[1] - range_[0]) * random.uniform());
      }
      example.tensors.set(key, std::move(tensor));
    }
    return example;
  }

 private:
  int64_t size_;
  std::vector<double> range_;
  uint64_t seed_;
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes_;
};

STEPOP_REGISTER_DATASET(RandomTensors, {"Noise in tensors of any names and shapes.",
                                        {{"size", "1000", "examples"},
                                         {"tensors", "", "key -> shape, {lq: [3, 8, 8]}"},
                                         {"range", "[0, 1]", "of the numbers"},
                                         {"seed", "0", "another one, other noise"}}});

}  // namespace
}  // namespace stepop
