#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {

/// Commands of the user's that print a file's pictures, such as the frames of a video, as PNGs or
/// JPEGs one after another. The parameter `decode` names them by extension: `{mp4: 'ffmpeg -v
/// error -i {file} -f image2pipe -c:v png -'}`.
class ClipCommands {
 public:
  explicit ClipCommands(const Config& params);

  /// Whether there is a command for `ending`, an extension without a dot.
  bool has(std::string_view ending) const { return commands_.contains(ending); }

  /// The pictures of a file with these bytes, float [T, C, H, W]; with the parameter `frames`, so
  /// many of them, at equal distances. Throws Error when the command fails, hangs or prints
  /// anything else.
  at::Tensor decode(std::string_view ending, const std::string& bytes,
                    const ImageReader& images) const;

 private:
  OrderedMap<std::string> commands_;
  int64_t frames_;  ///< 0: all.
  double timeout_;
};

}  // namespace stepop
