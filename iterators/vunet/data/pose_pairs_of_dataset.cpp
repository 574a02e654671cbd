#include "iterators/vunet/data/pose_pairs_of_dataset.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iterators/vunet/data/partners.h"
#include "iterators/vunet/data/stickman.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"

namespace stepop::vunet {
namespace {

class PosePairsOfDataset : public Dataset {
 public:
  PosePairsOfDataset(PosePairsParams params, const Config& config)
      : source_(std::move(params.dataset)),
        image_(params.image),
        keypoints_(params.keypoints),
        is_relative_(params.relative),
        image_size_(params.size),
        style_(params.style),
        model_(params.model) {
    people_.resize(static_cast<size_t>(source_->size()), 0);
    if (params.person) {
      const std::string& key = *params.person;
      const at::Tensor labels = source_->labels(key);
      if (!labels.defined() || labels.dim() != 1 || labels.is_floating_point()) {
        throw config.error("person",
                           fmt::format("expected a label of whole numbers, one for each example; "
                                       "\"{}\" is {}; there are: {}",
                                       key, labels.defined() ? describe_tensor(labels) : "none",
                                       list_text(source_->label_keys())));
      }
      const at::Tensor all = labels.to(at::kLong).contiguous();
      const auto* numbers = all.const_data_ptr<int64_t>();
      std::vector<int64_t> names(numbers, numbers + all.size(0));
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      for (size_t i = 0; i < people_.size(); ++i) {
        people_[i] = std::lower_bound(names.begin(), names.end(), numbers[i]) - names.begin();
      }
    }
    partners_ = Partners(people_, params.is_random());
  }

  int64_t size() const override { return source_->size(); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    const auto partner =
        static_cast<int64_t>(partners_.partner_of(static_cast<size_t>(index), random));
    const Example target = source_->get(index, random);
    const at::Tensor image = image_of(target);
    const at::Tensor resized = sized(image);
    return {
        .tensors = {{"stickman", stickman_of(target, image.size(1), image.size(2))},
                    {"appearance", partner == index
                                       ? resized.clone()
                                       : sized(image_of(source_->get(partner, random)))},
                    {"target", resized},
                    {"person", at::scalar_tensor(people_[static_cast<size_t>(index)], at::kLong)}},
        .texts = target.texts};
  }

  /// For "person", the person of each example, int64 [size()].
  at::Tensor labels(std::string_view key) const override {
    if (key != "person") return {};
    at::Tensor people = at::empty({size()}, at::kLong);
    std::copy(people_.begin(), people_.end(), people.mutable_data_ptr<int64_t>());
    return people;
  }
  std::vector<std::string> label_keys() const override { return {"person"}; }
  std::string notice() const override { return source_->notice(); }

 private:
  const at::Tensor& tensor_of(const Example& example, const std::string& key) const {
    const at::Tensor* found = example.tensors.find(key);
    if (found != nullptr) return *found;
    throw Error(fmt::format("PosePairs: the examples have no tensor \"{}\"; they have: {}", key,
                            example.tensors.key_list()));
  }

  /// The image as float [3, H, W] in [-1, 1].
  at::Tensor image_of(const Example& example) const {
    at::Tensor image = tensor_of(example, image_);
    const bool is_byte = image.scalar_type() == at::kByte;
    if (image.dim() != 3 || (image.size(0) != 1 && image.size(0) != 3) ||
        (!is_byte && image.scalar_type() != at::kFloat)) {
      throw Error(
          fmt::format("PosePairs: \"{}\": expected an image, float or uint8 [1 or 3, H, W], "
                      "found {}",
                      image_, describe_tensor(image)));
    }
    if (is_byte) image = from_stored_image(image);
    return image.size(0) == 1 ? image.expand({3, image.size(1), image.size(2)}).contiguous()
                              : image;
  }

  at::Tensor sized(const at::Tensor& image) const {
    return resize_image(image, std::array<int64_t, 2>{image_size_, image_size_});
  }

  at::Tensor stickman_of(const Example& example, int64_t height, int64_t width) const {
    const at::Tensor points = tensor_of(example, keypoints_).to(at::kDouble).contiguous();
    const auto count = static_cast<int64_t>(model_.joints);
    if (points.dim() != 2 || points.size(0) != count || points.size(1) < 2) {
      throw Error(fmt::format("PosePairs: \"{}\": expected [{}, 2 or more], found {}", keypoints_,
                              count, describe_tensor(tensor_of(example, keypoints_))));
    }
    const double across =
        static_cast<double>(image_size_) / (is_relative_ ? 1.0 : static_cast<double>(width));
    const double down =
        static_cast<double>(image_size_) / (is_relative_ ? 1.0 : static_cast<double>(height));
    const auto* numbers = points.const_data_ptr<double>();
    std::vector<Joint> joints(model_.joints);
    for (int64_t i = 0; i < count; ++i) {
      const double x = numbers[i * points.size(1)];
      const double y = numbers[i * points.size(1) + 1];
      if (!std::isfinite(x) || !std::isfinite(y)) {
        throw Error(
            fmt::format("PosePairs: \"{}\": joint {} is ({}, {}); an absent joint has x = 0 "
                        "and y = 0",
                        keypoints_, i, x, y));
      }
      joints[static_cast<size_t>(i)] = {x * across, y * down};
    }
    return draw_stickman(joints, image_size_, style_, model_);
  }

  std::unique_ptr<Dataset> source_;
  std::string image_;
  std::string keypoints_;
  bool is_relative_;
  int64_t image_size_;
  StickmanStyle style_;
  KeypointModel model_;
  std::vector<int64_t> people_;  ///< The person of each example, from 0.
  Partners partners_;
};

}  // namespace

std::unique_ptr<Dataset> pose_pairs_of_dataset(PosePairsParams params, const Config& config) {
  return std::make_unique<PosePairsOfDataset>(std::move(params), config);
}

}  // namespace stepop::vunet
