#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// Images are spoiled by corruptions with the names and the strengths of DL-Art-School: some of
/// `random_corruptions`, drawn for each image, and then all `fixed_corruptions`, each with a random
/// strength.
class Corruptions {
 public:
  explicit Corruptions(const Config& params);

  /// A corrupted copy of an image [3, H, W] in [0, 1]. Noise may leave that range. `strengths` gets
  /// the strength of each fixed corruption, 0 to 1.
  at::Tensor apply(const at::Tensor& image, Random& random, std::vector<float>& strengths) const;

  static std::vector<Parameter> parameters();

 private:
  std::vector<std::string> names_at(const Config& params, const char* key) const;
  double draw_strength(Random& random) const;

  std::vector<std::string> fixed_;
  std::vector<std::string> random_;
  int64_t count_;  ///< How many of `random_` an image gets.
  double blur_scale_;
  bool cosine_bias_;
};

/// What one corruption is given, and what it leaves to be undone.
struct CorruptionDraw {
  double strength = 0;  ///< 0 to 1
  double blur_scale = 1;
  Random& random;
  /// How many times smaller the image is now. After all corruptions it becomes large again.
  int64_t reduction = 1;
};

/// The image [3, H, W] in [0, 1] after the corruption of that name, which must be known.
at::Tensor corrupted(const at::Tensor& image, const std::string& name, CorruptionDraw& draw);
/// The image enlarged so many times, as OpenCV's INTER_LINEAR does.
at::Tensor enlarged(const at::Tensor& image, int64_t factor);

}  // namespace stepop
