#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/augmentations/augmentation.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// Another dataset whose examples differ a little each time they are seen.
class Augment : public SameOrder {
 public:
  struct Params {
    Source dataset;
    AugmentationList augmentations;
    std::string key = "image";
    std::vector<std::string> images;
    OrderedMap<std::string> views;  ///< Names of new images, and the keys of which they are made.
    std::vector<std::string> masks;
    std::vector<std::string> boxes;
    std::vector<std::string> keypoints;
    int64_t shift = 0;
    bool flip = false;
    double noise = 0;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "the other one, such as {class: Idx, ...}");
      p.add("key", key, "which value is the image; the same as one key in `images`");
      images = {key};
      p.add("images", images, "the images' keys, float32 [C, H, W]");
      p.add("masks", masks, "keys of masks [H, W], which move with the images");
      p.add("boxes", boxes, "keys of boxes [N, 4]: left, top, right, bottom");
      p.add("keypoints", keypoints, "keys of keypoints [N, 2 or more]: x, y, anything");
      const Config* config = p.describe({"augmentations",
                                         "[]",
                                         "a list, applied in its order; `stepop list augmentation`",
                                         false,
                                         {.kind = "list"}});
      if (config != nullptr) augmentations = AugmentationList(*config, "augmentations");
      p.add("shift", shift, "most pixels up, down, left, right; the border is repeated",
            at_least(0));
      p.add("flip", flip, "each is mirrored with probability 1/2, left and right exchanged");
      p.add("noise", noise, "standard deviation of normal noise; stays within [-1, 1]",
            at_least(0));
      config = p.describe_optional(
          "views", "map",
          "new images and the keys of which they are made: {one: image, two: image}");
      if (config != nullptr) read_views(*config);
    }

    void read_views(const Config& config) {
      for (const char* other : {"images", "key", "masks", "boxes", "keypoints"}) {
        if (config.has(other)) throw config.error(other, "not with views, which are images alone");
      }
      const Config given = config.at("views");
      for (const auto& view : given.keys()) views.set(view, given.get<std::string>(view));
      if (views.empty()) {
        throw config.error("views", "expected a map such as {one: image, two: image}");
      }
    }
  };

  Augment(Params params, const Config& config)
      : SameOrder(std::move(params.dataset)), p_(std::move(params)) {
    if (p_.images.empty()) throw config.error("images", "expected one key or more");
    const bool is_alone = p_.masks.empty() && p_.boxes.empty() && p_.keypoints.empty();
    if ((p_.shift > 0 || p_.flip) && !(is_alone && p_.images.size() == 1)) {
      throw config.error(p_.shift > 0 ? "shift" : "flip",
                         "moves one image alone; for more, use the list augmentations: "
                         "[RandomHorizontalFlip, {class: RandomCrop, size: ..., padding: ...}]");
    }
  }

  Example get(int64_t index, Random& random) const override {
    Example example = source().get(index, random);
    for (const auto& [view, key] : p_.views) add_view(example, view, key, random);
    if (p_.views.empty()) change(example, p_.images, random);
    return example;
  }

 private:
  /// Adds a copy of the image under `key`, changed by random numbers of its own.
  void add_view(Example& example, const std::string& view, const std::string& key,
                Random& random) const {
    const at::Tensor* image = example.tensors.find(key);
    if (image == nullptr) {
      throw Error(
          fmt::format("Augment: nothing under \"{}\", of which views/{} is made; there are: {}",
                      key, view, example.tensors.key_list()));
    }
    if (example.tensors.find(view) != nullptr) {
      throw Error(fmt::format(
          "Augment: \"{}\" of views is there already; give the view another name", view));
    }
    example.tensors.set(view, at::Tensor(*image));
    Random own = split_off(random);
    change(example, {view}, own);
  }

  void change(Example& example, const std::vector<std::string>& images, Random& random) const {
    Scene scene = scene_of(example, images);
    if (!p_.augmentations.empty()) p_.augmentations.apply(scene, random);
    for (const SceneValue& image : scene.images) {
      if (p_.shift > 0 || p_.flip || p_.noise > 0) *image.value = changed(*image.value, random);
      *image.value = image.value->contiguous();
    }
    for (const SceneValue& mask : scene.masks) *mask.value = mask.value->contiguous();
  }

  /// The values of the example by their keys. Throws Error for a value of another kind, and for
  /// pictures of different sizes.
  Scene scene_of(Example& example, const std::vector<std::string>& images) const {
    Scene scene;
    const auto add = [&](std::vector<SceneValue>& values, const std::vector<std::string>& keys,
                         const char* expected, const auto& fits) {
      for (const std::string& key : keys) {
        at::Tensor* value = example.tensors.find(key);
        if (value == nullptr || !fits(*value)) {
          throw Error(fmt::format("Augment: expected {} under \"{}\", found {}", expected, key,
                                  value == nullptr ? "none" : describe_tensor(*value)));
        }
        values.push_back({key, value});
      }
    };
    add(scene.images, images, "a float32 image [C, H, W]", [](const at::Tensor& value) {
      return value.dim() == 3 && value.scalar_type() == at::kFloat;
    });
    add(scene.masks, p_.masks, "a mask [H, W] or [C, H, W]", [](const at::Tensor& value) {
      return (value.dim() == 2 || value.dim() == 3) && !value.is_complex();
    });
    add(scene.boxes, p_.boxes, "float32 boxes [N, 4]", [](const at::Tensor& value) {
      return value.dim() == 2 && value.size(1) == 4 && value.scalar_type() == at::kFloat;
    });
    add(scene.keypoints, p_.keypoints, "float32 keypoints [..., 2 or more]",
        [](const at::Tensor& value) {
          return value.dim() >= 1 && value.size(-1) >= 2 && value.scalar_type() == at::kFloat;
        });
    for (const auto* values : {&scene.images, &scene.masks}) {
      for (const auto& [key, value] : *values) {
        if (value->size(-2) == scene.height() && value->size(-1) == scene.width()) continue;
        throw Error(
            fmt::format("Augment: expected {} x {} pixels under \"{}\", as \"{}\" has, "
                        "found {}",
                        scene.height(), scene.width(), key, images[0], describe_tensor(*value)));
      }
    }
    return scene;
  }

  /// The image after `shift`, `flip` and `noise`.
  at::Tensor changed(const at::Tensor& given, Random& random) const {
    const at::Tensor image = given.contiguous();
    const int64_t height = image.size(1);
    const int64_t width = image.size(2);
    const int64_t down = random.below(2 * p_.shift + 1) - p_.shift;
    const int64_t right = random.below(2 * p_.shift + 1) - p_.shift;
    const bool is_mirrored = p_.flip && random.below(2) == 1;
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
    if (p_.noise > 0) {
      auto* values = result.mutable_data_ptr<float>();
      for (int64_t i = 0; i < result.numel(); ++i) {
        values[i] = static_cast<float>(
            std::clamp(static_cast<double>(values[i]) + p_.noise * random.normal(), -1.0, 1.0));
      }
    }
    return result;
  }

  Params p_;  ///< Without the dataset.
};

STEPOP_REGISTER_DATASET(Augment,
                        {"Another dataset's images, each time a little different; for training."});

}  // namespace
}  // namespace stepop
