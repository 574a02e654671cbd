#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/parameters.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {

/// Commands of the user's that print a file's pictures, such as the frames of a video, as PNGs or
/// JPEGs one after another.
class ClipCommands {
 public:
  struct Params {
    OrderedMap<std::string> decode;  ///< By extension.
    std::optional<int64_t> frames;   ///< None: all.
    double timeout = 60;

    /// All but `timeout`.
    void declare(Parameters& p);
  };

  explicit ClipCommands(Params params) : p_(std::move(params)) {}

  /// Whether there is a command for `ending`, an extension without a dot.
  bool has(std::string_view ending) const { return p_.decode.contains(ending); }

  /// The pictures of a file with these bytes, float [T, C, H, W]; with the parameter `frames`, so
  /// many of them, at equal distances. Throws Error when the command fails, hangs or prints
  /// anything else.
  at::Tensor decode(std::string_view ending, const std::string& bytes,
                    const ImageReader& images) const;

 private:
  Params p_;
};

}  // namespace stepop
