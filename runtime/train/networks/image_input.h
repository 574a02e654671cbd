#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The images that a network accepts, and the config keys that define them. Its error message
/// replaces LibTorch's message, which knows neither.
class ImageInput {
 public:
  /// `size` is a height and a width; empty for any. `channels_key` is empty where no key says how
  /// many channels there are.
  ImageInput(const Config& params, const std::string& channels_key, int64_t channels,
             const std::string& size_key = "", std::vector<int64_t> size = {});

  /// Throws Error unless `images` is [B, C, H, W] with the right number of channels. The network
  /// itself checks the size, because it may accept other sizes.
  void check(const at::Tensor& images) const;

  /// Throws Error for images that do not fit.
  [[noreturn]] void refuse(const at::Tensor& images) const;

 private:
  int64_t channels_;
  std::vector<int64_t> size_;
  std::string keys_;
};

}  // namespace stepop
