#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

inline const std::vector<std::string_view> kImageEndings = {".png", ".jpg", ".jpeg"};

/// The PNG and JPEG files at any depth below `folder`/`below`, by their extension, relative to
/// `folder` and sorted. Hidden files and folders are left out. Throws std::filesystem's error for a
/// folder that cannot be listed.
std::vector<std::string> list_images(const std::string& folder, const std::string& below = "");

/// Reads a dataset's images according to its parameters: `channels`, 1, 3 or 4, by default as many
/// as each file has; `size`, [H, W] to resize to, by default as stored.
class ImageReader {
 public:
  explicit ImageReader(const Config& params);

  /// The image in a PNG or JPEG file: float [C, H, W] in [-1, 1], resized as by resize_image.
  at::Tensor read(const std::string& path) const;

  /// The same for the bytes of a file; errors begin with `name`.
  at::Tensor decode(std::string_view bytes, const std::string& name) const;

  /// The mask in a PNG of class numbers, as stepop::read_mask: int64 [H, W], resized to the nearest
  /// pixels.
  at::Tensor read_mask(const std::string& path) const;

  /// The image as stepop::read_stored_image returns it, for a caller that resizes it.
  at::Tensor read_stored(const std::string& path) const;

  /// The same as stepop::collate, but an error about images of different shapes names the
  /// parameters that help.
  static Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices);

 private:
  int64_t channels_;
  std::vector<int64_t> size_;  ///< [H, W], or empty.
};

}  // namespace stepop
