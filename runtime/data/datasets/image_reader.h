#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/data/batch.h"
#include "runtime/data/datasets/left_out.h"

namespace stepop {

/// The endings of files that `read_image` reads: PNG, JPEG and, with libwebp, WebP.
const std::vector<std::string_view>& image_endings();

/// The images at any depth below `folder`, by their extension, relative to `folder` and sorted; the
/// other files are added to `left_out`. Hidden files and folders are passed over. Throws Error for
/// a folder that cannot be listed.
std::vector<std::string> list_images(const std::string& folder, LeftOut& left_out);

/// A warning when some of these files, of which at most 1,000 are looked at, have an EXIF
/// orientation other than upright; empty when there are none. `folder`, which may be empty, is
/// before each path.
std::string orientation_notice(const std::string& folder, std::span<const std::string> files);

/// The warning itself: `found` of `looked_at`, such as "3 images", have one; `first` is the first
/// file and its orientation.
std::string orientation_warning(const std::string& place, int64_t found,
                                const std::string& looked_at, const std::string& first);

/// How a dataset's images are read, for its `Params`.
struct ImageOptions {
  std::vector<int64_t> size = {};  ///< [H, W] to resize to; empty: as stored.
  int64_t channels = 0;            ///< 1, 3 or 4; 0: as many as each file has.
  bool exif = false;  ///< Images are turned upright first, as their EXIF orientation says.

  void declare(Parameters& p);
  /// Parts of it, for datasets without the others.
  void declare_size(Parameters& p);
  void declare_channels(Parameters& p);
  void declare_exif(Parameters& p);
};

/// Reads a dataset's images.
class ImageReader {
 public:
  explicit ImageReader(ImageOptions options) : options_(std::move(options)) {}

  /// The image in a PNG or JPEG file: float [C, H, W] in [-1, 1], resized as by resize_image.
  at::Tensor read(const std::string& path) const;

  /// The same for the bytes of a file; errors begin with `name`.
  at::Tensor decode(std::string_view bytes, const std::string& name) const;

  /// The mask in a PNG of class numbers, as stepop::read_mask: int64 [H, W], turned upright as
  /// images are, by its own EXIF orientation, and resized to the nearest pixels.
  at::Tensor read_mask(const std::string& path) const;

  /// The image as stepop::read_stored_image returns it, for a caller that resizes it.
  at::Tensor read_stored(const std::string& path) const;

  bool turns_upright() const { return options_.exif; }

  /// `orientation_notice`, unless images are turned upright.
  std::string notice(const std::string& folder, std::span<const std::string> files) const {
    return options_.exif ? "" : orientation_notice(folder, files);
  }

  /// The same as stepop::collate, but an error about images of different shapes names the
  /// parameters that help.
  static Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices);

 private:
  ImageOptions options_;
};

}  // namespace stepop
