#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The images that a network takes, and the keys of its config that say so, for a message in the
/// place of LibTorch's, which knows neither.
class ImageInput {
 public:
  /// `size` is a height and a width; empty for any. `channels_key` is empty where no key says how
  /// many channels there are.
  ImageInput(const Config& params, const std::string& channels_key, int64_t channels,
             const std::string& size_key = "", std::vector<int64_t> size = {});

  /// Throws Error unless `images` is [B, C, H, W] with that many channels. The size is looked at by
  /// the network itself, which may take some others.
  void check(const at::Tensor& images) const;

  /// Throws Error for images that do not fit.
  [[noreturn]] void refuse(const at::Tensor& images) const;

 private:
  int64_t channels_;
  std::vector<int64_t> size_;
  std::string keys_;
};

}  // namespace stepop
