#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {

/// Tensors from a safetensors file that a config names, in place of DL-Art-School's pickle files.
class StoredValues {
 public:
  /// Declares the file, and reads it where there is one. `usual`: empty for a required file.
  static std::optional<StoredValues> declare(Parameters& p, const std::string& key,
                                             std::string about, std::string_view how,
                                             const std::string& usual = "") {
    const Config* config = p.describe({key, usual, std::move(about), true, {.kind = "path"}});
    if (config == nullptr || (!usual.empty() && !config->has(key))) return std::nullopt;
    return StoredValues(*config, key, how);
  }

  /// Reads the file at `key`. `how`, for messages: a line of Python that converts DL-Art-School's
  /// file, with {0} for its name. Throws UsageError for a file that cannot be read.
  StoredValues(const Config& params, std::string_view key, std::string_view how)
      : params_(params), key_(key) {
    const std::string path = params_.get_path(key_);
    how_ = fmt::format("python -c \"import torch, safetensors.torch as s; {}\"",
                       fmt::format(fmt::runtime(how), path));
    try {
      tensors_ = load_safetensors(path).tensors;
    } catch (const Error& error) {
      throw params_.error(key_, fmt::format("{}. This makes a safetensors file of one of "
                                            "torch.save:\n  {}",
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
  Config params_;
  std::string key_;
  std::string how_;
  State tensors_;
};

}  // namespace stepop::extensible
