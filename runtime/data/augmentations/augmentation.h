#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// A value of an example that an augmentation may replace.
struct SceneValue {
  std::string key;
  at::Tensor* value = nullptr;
};

/// The values of one example that are augmented together: a change of geometry moves all of them.
struct Scene {
  std::vector<SceneValue> images;     ///< Float [C, H, W] in [-1, 1]; C may differ.
  std::vector<SceneValue> masks;      ///< [H, W] or [C, H, W], any real type; never interpolated.
  std::vector<SceneValue> boxes;      ///< Float [N, 4]: left, top, right, bottom edges in pixels.
  std::vector<SceneValue> keypoints;  ///< Float [..., 2 or more]: x, y, anything; (0, 0) is the
                                      ///< centre of the first pixel.

  /// The size of the first image or, without images, mask.
  int64_t height() const;
  int64_t width() const;
  /// The values whose keys are in `keys`.
  Scene only(const std::vector<std::string>& keys) const;
};

/// Changes the colours of all images alike: `change` as in with_colours.
void recolour(Scene& scene, const std::function<at::Tensor(const at::Tensor&)>& change);

/// A random change of a scene. `apply` replaces the tensors and never writes into them: a dataset
/// may own them. Several threads call it at once.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  /// All randomness comes from `random`.
  virtual void apply(Scene& scene, Random& random) const = 0;
  /// The chance that it happens, unless the config has `p`.
  virtual double usual_chance() const { return 1; }
};

using AugmentationRegistry = Registry<std::unique_ptr<Augmentation>(const Config&)>;
AugmentationRegistry& augmentations();

/// The list of augmentations in a config, applied in its order. Each augmentation takes two further
/// keys: `p`, the chance that it happens, and `only`, the keys that it changes.
class AugmentationList {
 public:
  AugmentationList() = default;
  /// The list at `key` of `params`; a missing list is empty.
  AugmentationList(const Config& params, std::string_view key);

  bool empty() const { return entries_.empty(); }
  /// Throws Error with the augmentation's place in the config and its class.
  void apply(Scene& scene, Random& random) const;

 private:
  struct Entry {
    std::string place;
    double chance = 1;
    std::vector<std::string> only;
    std::unique_ptr<Augmentation> augmentation;
  };
  std::vector<Entry> entries_;
};

}  // namespace stepop

/// Registers a class with a constructor that takes its part of the config, `const Config&`.
#define STEPOP_REGISTER_AUGMENTATION(Class, ...)                                              \
  STEPOP_REGISTER(                                                                            \
      ::stepop::augmentations(), #Class,                                                      \
      [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); }, \
      ::stepop::about_class<Class>(__VA_ARGS__))
