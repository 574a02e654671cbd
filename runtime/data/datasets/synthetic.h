#pragma once

#include <vector>

#include "runtime/data/dataset.h"

namespace stepop {

/// Made-up images with classes, for benchmarks and trials: an example costs little more than a
/// copy, and is the same on every machine. Half of an image is its class's own pattern, half is
/// noise, so a network can learn it.
///
/// Parameters: `size` = 1000, the number of examples; `shape` = [1, 28, 28], of an image as
/// [C, H, W]; `classes` = 10, example i is of class i mod classes; `seed` = 0, of the noise and not
/// of the patterns, for splits that differ. An example holds `image`, float [C, H, W] in [-1, 1],
/// and `class`, int64 [].
class Synthetic : public Dataset {
 public:
  explicit Synthetic(const Config& params);

  int64_t size() const override { return size_; }
  Example get(int64_t index, Random& random) const override;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  /// For "class" the classes, int64 [size()].
  at::Tensor labels(std::string_view key) const override;

 private:
  /// Writes the image at `index` as C * H * W floats.
  void write_image(int64_t index, float* values) const;

  int64_t size_;
  std::vector<int64_t> shape_;
  int64_t classes_;
  uint64_t seed_;
  int64_t pixels_ = 1;
  // An image is the sum of a stretch of each, so that neither grows with the number of examples.
  std::vector<float> patterns_;  ///< In [-0.5, 0.5]; class k begins at k.
  std::vector<float> noise_;     ///< In [-0.5, 0.5]; an example begins anywhere.
};

}  // namespace stepop
