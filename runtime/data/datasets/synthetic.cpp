#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "runtime/data/dataset.h"
#include "runtime/data/row_writer.h"

namespace stepop {
namespace {

constexpr int64_t kNoiseStarts = 1 << 16;
constexpr int64_t kMostImageValues = int64_t{1} << 30;

std::vector<float> random_values(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  return values;
}

/// Synthetic images with classes, for benchmarks and trials: an example costs little more than a
/// copy, and is the same on every machine. Half of an image is the pattern of its class, half is
/// noise, so a network can learn the classes.
///
/// An example holds `image`, float [C, H, W] in [-1, 1],
/// and `class`, int64 [].
class Synthetic : public Dataset, public RowWriter {
 public:
  struct Params {
    int64_t size = 1000;
    std::vector<int64_t> shape = {1, 28, 28};
    int64_t classes = 10;
    int64_t seed = 0;

    void declare(Parameters& p) {
      p.add("size", size, "number of examples", at_least(1));
      p.add("shape", shape, "of an image, [C, H, W]");
      p.add("classes", classes, "example i is of class i mod classes", at_least(1));
      p.add("seed", seed, "of the noise, not of the classes' patterns", at_least(0));
    }
  };

  Synthetic(const Params& params, const Config& config);

  int64_t size() const override { return size_; }
  Example get(int64_t index, Random& random) const override;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  std::optional<BatchRows> rows_for(int64_t count) const override;
  void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const override;
  /// The classes, int64 [size()], for the key "class".
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override { return {"class"}; }

 private:
  /// Writes the image at `index` as C * H * W floats.
  void write_image(int64_t index, float* values) const;

  int64_t size_;
  std::vector<int64_t> shape_;
  int64_t classes_;
  uint64_t seed_;
  int64_t pixels_ = 1;
  // An image is the sum of a part of `patterns_` and a part of `noise_`, so that their sizes do not
  // depend on the number of examples.
  std::vector<float> patterns_;  ///< In [-0.5, 0.5]; class k begins at k.
  std::vector<float> noise_;     ///< In [-0.5, 0.5]; an example begins anywhere.
};

Synthetic::Synthetic(const Params& params, const Config& config)
    : size_(params.size),
      shape_(params.shape),
      classes_(params.classes),
      seed_(static_cast<uint64_t>(params.seed)) {
  bool is_image = shape_.size() == 3;
  for (const int64_t length : shape_) {
    is_image = is_image && length > 0 && length <= kMostImageValues / pixels_;
    if (is_image) pixels_ *= length;
  }
  if (!is_image || classes_ > kMostImageValues) {
    throw config.error(is_image ? "classes" : "shape",
                       fmt::format("expected {} up to 2^30 {}, found {}",
                                   is_image ? "at most" : "[C, H, W], each at least 1, of",
                                   is_image ? "classes" : "pixels",
                                   config.peek(is_image ? "classes" : "shape")->describe()));
  }
  patterns_ = random_values(pixels_ + classes_, seed_of("patterns"));
  noise_ = random_values(pixels_ + kNoiseStarts, seed_of("noise"));
}

void Synthetic::write_image(int64_t index, float* values) const {
  check_index(index, size_);
  const float* pattern = patterns_.data() + index % classes_;
  const float* noise =
      noise_.data() + mix_seed({seed_, static_cast<uint64_t>(index)}) % uint64_t{kNoiseStarts};
  for (int64_t i = 0; i < pixels_; ++i) values[i] = pattern[i] + noise[i];
}

Example Synthetic::get(int64_t index, Random& /*random*/) const {
  at::Tensor image = at::empty(shape_, at::kFloat);
  write_image(index, image.mutable_data_ptr<float>());
  return {.tensors = {{"image", image}, {"class", at::scalar_tensor(index % classes_, at::kLong)}},
          .texts = {}};
}

std::optional<Batch> Synthetic::get_batch(std::span<const int64_t> indices,
                                          std::span<Random> /*randoms*/) const {
  const auto count = static_cast<int64_t>(indices.size());
  at::Tensor images = at::empty({count, shape_[0], shape_[1], shape_[2]}, at::kFloat);
  at::Tensor labels = at::empty({count}, at::kLong);
  auto* pixels = images.mutable_data_ptr<float>();
  auto* classes = labels.mutable_data_ptr<int64_t>();
  for (const int64_t index : indices) {
    write_image(index, pixels);
    pixels += pixels_;
    *classes++ = index % classes_;
  }
  return Batch({{"image", images}, {"class", labels}}, {},
               std::vector<int64_t>(indices.begin(), indices.end()));
}

std::optional<BatchRows> Synthetic::rows_for(int64_t count) const {
  return BatchRows{
      .tensors = {{"image", at::empty({count, shape_[0], shape_[1], shape_[2]}, at::kFloat)},
                  {"class", at::empty({count}, at::kLong)}},
      .texts = {}};
}

void Synthetic::write_row(int64_t index, Random& /*random*/, int64_t row, BatchRows& rows) const {
  write_image(index, rows.at<float>("image", row));
  *rows.at<int64_t>("class", row) = index % classes_;
}

at::Tensor Synthetic::labels(std::string_view key) const {
  if (key != "class") return {};
  at::Tensor labels = at::empty({size_}, at::kLong);
  auto* classes = labels.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < size_; ++i) classes[i] = i % classes_;
  return labels;
}

STEPOP_REGISTER_DATASET(Synthetic,
                        {"Made-up images with classes that can be learnt, for benchmarks."});

}  // namespace
}  // namespace stepop
