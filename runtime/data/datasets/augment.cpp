#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/dataset.h"

namespace stepop {
namespace {

/// Another dataset whose images differ a little each time they are seen.
class Augment : public Dataset {
 public:
  explicit Augment(const Config& params)
      : source_(datasets().build(params, "dataset")),
        key_(params.get("key", "image")),
        shift_(params.get_at_least("shift", 0, 0)),
        flip_(params.get("flip", false)),
        noise_(params.get("noise", 0.0)) {
    if (!(noise_ >= 0)) {
      throw params.error("noise", fmt::format("expected 0 or more, found {}", noise_));
    }
  }

  int64_t size() const override { return source_->size(); }

  Example get(int64_t index, Random& random) const override {
    Example example = source_->get(index, random);
    at::Tensor* image = example.tensors.find(key_);
    if (image == nullptr || image->dim() != 3 || image->scalar_type() != at::kFloat) {
      throw Error(fmt::format("Augment: expected a float32 image [C, H, W] under \"{}\", found {}",
                              key_, image == nullptr ? "none" : describe_tensor(*image)));
    }
    *image = changed(image->contiguous(), random);
    return example;
  }

  at::Tensor labels(std::string_view key) const override { return source_->labels(key); }
  std::vector<std::string> label_keys() const override { return source_->label_keys(); }
  std::string notice() const override { return source_->notice(); }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return source_->collate(examples, std::move(indices));
  }

 private:
  at::Tensor changed(const at::Tensor& image, Random& random) const {
    const int64_t height = image.size(1);
    const int64_t width = image.size(2);
    const int64_t down = random.below(2 * shift_ + 1) - shift_;
    const int64_t right = random.below(2 * shift_ + 1) - shift_;
    const bool is_mirrored = flip_ && random.below(2) == 1;
    at::Tensor result = at::empty_like(image);
    const auto* from = image.const_data_ptr<float>();
    auto* to = result.mutable_data_ptr<float>();
    for (int64_t channel = 0; channel < image.size(0); ++channel, from += height * width) {
      for (int64_t y = 0; y < height; ++y) {
        const auto* row = from + std::clamp<int64_t>(y - down, 0, height - 1) * width;
        for (int64_t x = 0; x < width; ++x) {
          const int64_t column = std::clamp<int64_t>(x - right, 0, width - 1);
          *to++ = row[is_mirrored ? width - 1 - column : column];
        }
      }
    }
    if (noise_ > 0) {
      auto* values = result.mutable_data_ptr<float>();
      for (int64_t i = 0; i < result.numel(); ++i) {
        values[i] = static_cast<float>(
            std::clamp(static_cast<double>(values[i]) + noise_ * random.normal(), -1.0, 1.0));
      }
    }
    return result;
  }

  std::unique_ptr<Dataset> source_;
  std::string key_;
  int64_t shift_;
  bool flip_;
  double noise_;
};

STEPOP_REGISTER_DATASET(
    Augment, {"Another dataset's images, each time a little different; for training.",
              {{"dataset", "", "the other one, such as {class: Idx, ...}"},
               {"shift", "0", "most pixels up, down, left, right; the border is repeated"},
               {"flip", "false", "every second one is mirrored, left and right exchanged"},
               {"noise", "0", "standard deviation of normal noise; stays within [-1, 1]"},
               {"key", "image", "which value is the image, float32 [C, H, W]"}}});

}  // namespace
}  // namespace stepop
