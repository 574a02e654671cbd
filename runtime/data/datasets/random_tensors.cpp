#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"

namespace stepop {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 30;

std::vector<std::pair<std::string, std::vector<int64_t>>> read_shapes(const Config& params) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
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
    shapes.emplace_back(key, std::move(shape));
  }
  if (shapes.empty()) {
    throw params.error("tensors", "missing: a map of keys and shapes, such as {lq: [3, 8, 8]}");
  }
  return shapes;
}

/// Noise for trial runs: tensors, float32 and uniform in the range. An example is the same each
/// time it is read.
class RandomTensors : public Dataset {
 public:
  struct Params {
    int64_t size = 1000;
    std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
    std::vector<double> range = {0, 1};
    int64_t seed = 0;

    void declare(Parameters& p) {
      p.add("size", size, "examples", at_least(1));
      const Config* config = p.describe_required("tensors", "map", "key -> shape, {lq: [3, 8, 8]}");
      if (config != nullptr) shapes = read_shapes(*config);
      p.add("range", range, "of the numbers");
      p.add("seed", seed, "another one, other noise", at_least(0));
    }
  };

  RandomTensors(const Params& params, const Config& config)
      : size_(params.size),
        range_(params.range),
        seed_(static_cast<uint64_t>(params.seed)),
        shapes_(params.shapes) {
    if (range_.size() == 2 && range_[0] < range_[1]) return;
    throw config.error("range", "expected two numbers, the first the lower");
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

STEPOP_REGISTER_DATASET(RandomTensors, {"Noise in tensors of any names and shapes."});

}  // namespace
}  // namespace stepop
