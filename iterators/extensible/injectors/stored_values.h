#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {

/// Tensors from a safetensors file that a config names, in place of DL-Art-School's pickle files.
class StoredValues {
 public:
  /// Reads the file at `key`. `how`, for messages: a line of Python that converts DL-Art-School's
  /// file, with {0} for its name. Throws UsageError for a file that cannot be read.
  StoredValues(const Config& params, std::string_view key, std::string_view how)
      : params_(params), key_(key) {
    const std::string path = params.get_path(key);
    how_ = fmt::format("python -c \"import torch, safetensors.torch as s; {}\"",
                       fmt::format(fmt::runtime(how), path));
    try {
      tensors_ = load_safetensors(path).tensors;
    } catch (const Error& error) {
      throw params.error(key, fmt::format("{}. This makes a safetensors file of one of torch.save:"
                                          "\n  {}",
                                          error.what(), how_));
    }
  }

  /// The tensor `name`, as float32. Throws UsageError for a missing tensor or other dimensions.
  at::Tensor get(const std::string& name, int64_t dimensions) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.dim() != dimensions) {
      throw params_.error(
          key_,
          fmt::format("expected \"{}\" with {} dimension{} in it, found {}; this makes the "
                      "file:\n  {}",
                      name, dimensions, dimensions == 1 ? "" : "s",
                      found == tensors_.end() ? "none" : describe_tensor(found->second), how_));
    }
    return found->second.to(at::kFloat);
  }

 private:
  const Config& params_;
  std::string key_;
  std::string how_;
  State tensors_;
};

}  // namespace stepop::extensible
