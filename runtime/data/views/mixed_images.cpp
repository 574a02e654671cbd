#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_sample_dirichlet.h>
#include <ATen/ops/full.h>
#include <ATen/ops/one_hot.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/augmentations/chance.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// Another dataset whose batches mix each image with the image before, as in
/// torchvision.transforms.v2: MixUp (Zhang et al., 2018) adds both, CutMix (Yun et al., 2019)
/// pastes a rectangle. Classes become soft labels, float [B, classes]. A batch of one example, and
/// an example by itself, is not mixed.
class MixedImages : public SameOrder {
 public:
  struct Params {
    Source dataset;
    int64_t classes = 0;
    double mixup = 0.2;
    double cutmix = 1;
    double p = 1;
    std::string image = "image";
    std::string label = "class";

    void declare(Parameters& parameters) {
      constexpr Range alphas = at_least(0).at_most(1000);
      parameters.require("dataset", dataset, "the other one, such as {class: ImageFolder, ...}");
      parameters.add("image", image, "which value is the image, float32 [C, H, W]");
      parameters.add("label", label, "which value is the class; it becomes float32 [classes]");
      parameters.require("classes", classes, "how many classes there are", at_least(2));
      parameters.add("p", p, "the chance that a batch is mixed", at_least(0).at_most(1));
      parameters.add("mixup", mixup, "alpha of the beta distribution; 0: no MixUp", alphas);
      parameters.add("cutmix", cutmix, "alpha of the beta distribution; 0: no CutMix", alphas);
    }
  };

  MixedImages(Params params, const Config& config)
      : SameOrder(std::move(params.dataset)),
        image_(params.image),
        label_(params.label),
        classes_(params.classes),
        chance_(params.p),
        mixup_(params.mixup),
        cutmix_(params.cutmix) {
    if (mixup_ == 0 && cutmix_ == 0) {
      throw config.error("mixup", "expected above 0 here or in cutmix: otherwise nothing is mixed");
    }
  }

  /// None for the class: examples have soft labels in its place.
  at::Tensor labels(std::string_view key) const override {
    return key == label_ ? at::Tensor() : source().labels(key);
  }
  std::vector<std::string> label_keys() const override {
    auto keys = source()->label_keys();
    std::erase(keys, label_);
    return keys;
  }

  Example get(int64_t index, Random& random) const override {
    random();  // the number that begins a batch
    Example example = source().get(index, random);
    const at::Tensor* label = example.tensors.find(label_);
    check(example.tensors.find(image_), label, 0);
    example.tensors.set(label_, soft_labels(*label));
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    Random random(0);
    for (size_t i = 0; i < randoms.size(); ++i) {
      const uint64_t number = randoms[i]();
      if (i == 0) random = Random(number);
    }
    Batch batch = source().load(indices, randoms, indices);
    check(batch.tensors().find(image_), batch.tensors().find(label_), 1);
    at::Tensor label = soft_labels(batch[label_]);
    if (indices.size() > 1 && happens(chance_, random)) {
      const bool cuts = mixup_ == 0 || (cutmix_ > 0 && random.below(2) == 1);
      double share = draw_share(cuts ? cutmix_ : mixup_, random);
      at::Tensor image = batch[image_];
      const at::Tensor other = image.roll(1, 0);
      if (cuts) {
        image = image.clone();
        share = paste(image, other, share, random);
      } else {
        image = image * share + other * (1 - share);
      }
      batch.set(image_, image);
      label = label * share + label.roll(1, 0) * (1 - share);
    }
    batch.set(label_, label);
    return batch;
  }

 private:
  /// [...] classes as float [..., classes].
  at::Tensor soft_labels(const at::Tensor& label) const {
    const bool fits = label.numel() == 0 ||
                      (label.min().item<int64_t>() >= 0 && label.max().item<int64_t>() < classes_);
    if (fits) return at::one_hot(label, classes_).to(at::kFloat);
    throw Error(fmt::format("MixedImages: \"{}\" is {} to {}, but `classes` is {}", label_,
                            label.min().item<int64_t>(), label.max().item<int64_t>(), classes_));
  }

  /// Throws Error unless the image and its label are there, with `dimensions` before their own.
  void check(const at::Tensor* image, const at::Tensor* label, int64_t dimensions) const {
    if (image == nullptr || image->dim() != dimensions + 3 || image->scalar_type() != at::kFloat) {
      throw Error(
          fmt::format("MixedImages: expected a float32 image [C, H, W] under \"{}\", found {}",
                      image_, image == nullptr ? "none" : describe_tensor(*image)));
    }
    if (label == nullptr || label->dim() != dimensions || label->scalar_type() != at::kLong) {
      throw Error(fmt::format("MixedImages: expected an int64 class under \"{}\", found {}", label_,
                              label == nullptr ? "none" : describe_tensor(*label)));
    }
  }

  /// From the beta distribution with both parameters `alpha`.
  static double draw_share(double alpha, Random& random) {
    const at::Generator generator = at::detail::createCPUGenerator(random());
    return at::_sample_dirichlet(at::full({2}, alpha, at::kDouble), generator)[0].item<double>();
  }

  /// Pastes a part of 1 - `share` of the other images into `image`; returns the share that is left
  /// after the rectangle is cut at the border.
  static double paste(const at::Tensor& image, const at::Tensor& other, double share,
                      Random& random) {
    const int64_t height = image.size(2);
    const int64_t width = image.size(3);
    const double half = 0.5 * std::sqrt(1 - share);
    const auto range = [&](int64_t side) {
      const int64_t middle = random.below(side);
      const auto reach = static_cast<int64_t>(half * static_cast<double>(side));
      return std::pair(std::max<int64_t>(middle - reach, 0), std::min(middle + reach, side));
    };
    const auto columns = range(width);
    const auto rows = range(height);
    const auto part = [&](const at::Tensor& images) {
      return images.narrow(2, rows.first, rows.second - rows.first)
          .narrow(3, columns.first, columns.second - columns.first);
    };
    part(image).copy_(part(other));
    return 1 - static_cast<double>(part(image).numel()) / static_cast<double>(image.numel());
  }

  std::string image_;
  std::string label_;
  int64_t classes_;
  double chance_;
  double mixup_;
  double cutmix_;
};

STEPOP_REGISTER_DATASET(
    MixedImages,
    {"Another dataset whose images are mixed in each batch, by MixUp or CutMix, with soft labels; "
     "for training."});

}  // namespace
}  // namespace stepop
