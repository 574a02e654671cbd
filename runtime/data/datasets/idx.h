#pragma once

#include "runtime/data/dataset.h"

namespace stepop {

/// Images and labels in MNIST's IDX format, plain or gzip. The images stay in memory as bytes.
///
/// Parameters: `images`, a file of uint8 [N, H, W] or [N, H, W, C]; `labels`, a file of whole
/// numbers [N], none negative. An example holds `image`, float [C, H, W] in [-1, 1], and `class`,
/// int64 []. Throws Error with the file when one is damaged, of another type, empty, or when the
/// two differ in N.
class Idx : public Dataset {
 public:
  explicit Idx(const Config& params);

  int64_t size() const override { return labels_.size(0); }
  Example get(int64_t index, Random& random) const override;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  /// For "class" the labels, int64 [N].
  at::Tensor labels(std::string_view key) const override;

 private:
  /// Writes the image at `index` as C * H * W floats.
  void write_image(int64_t index, float* values) const;

  at::Tensor images_;  ///< uint8 [N, C, H, W], contiguous.
  at::Tensor labels_;  ///< int64 [N], contiguous.
};

}  // namespace stepop
