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
  struct Params {
    std::vector<std::string> fixed_corruptions = {};
    std::vector<std::string> random_corruptions = {};
    int64_t num_corrupts_per_image = 0;  ///< How many of `random_corruptions` an image gets.
    double corruption_blur_scale = 1;
    bool cosine_bias = true;

    void declare(Parameters& p);
  };

  explicit Corruptions(const Config& config);

  /// A corrupted copy of an image [3, H, W] in [0, 1]. Noise may leave that range. `strengths` gets
  /// the strength of each fixed corruption, 0 to 1.
  at::Tensor apply(const at::Tensor& image, Random& random, std::vector<float>& strengths) const;

  static std::vector<Parameter> parameters() { return parameters_of<Params>(); }

 private:
  double draw_strength(Random& random) const;

  Params p_;
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
