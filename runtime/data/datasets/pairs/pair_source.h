#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/left_out.h"

namespace stepop {

/// The source of PairedImages' pairs. An example holds two images, float [C, H, W] in [-1, 1], or
/// an image and its mask, int64 [H, W], and the text `path` if they come from files.
class PairSource {
 public:
  virtual ~PairSource() = default;
  virtual int64_t size() const = 0;
  virtual Example get(int64_t index, Random& random) const = 0;
  /// For messages: the example's file and a colon; empty when the example does not come from a
  /// file.
  virtual std::string place_of(int64_t index) const = 0;
  /// As Dataset::notice.
  virtual std::string notice() const { return {}; }
};

/// Where pairs come from, and how they are read.
struct PairOptions {
  std::optional<InputFolder> folder;
  std::optional<InputFolder> input;
  std::optional<InputFolder> target;
  std::optional<InputFolder> mask;
  std::unique_ptr<Dataset> dataset;
  std::string direction = "AtoB";
  std::optional<int64_t> load_size;
  std::optional<InputFolder> hq;
  std::optional<InputFolder> lq;
  std::string key = "image";  ///< Of the large image in the dataset's examples.
  int64_t scale = 2;
  ImageOptions images;
};

/// Pairs of `hq` and `lq`, which is `scale` times smaller. Both come from the folders of these
/// names, or `lq` is made by reducing `hq`. `dataset` can replace the folder `hq`.
std::unique_ptr<PairSource> make_scaled_pairs(PairOptions options, const Config& config);

/// Pairs of `input` and `target` with the same size: halves of the files in `folder`, files of the
/// same name in the folders `input` and `target`, or the pairs of `dataset`. With a folder `mask`,
/// `input` and `mask` with the same size.
std::unique_ptr<PairSource> make_translation_pairs(PairOptions options, const Config& config);

/// The images in a folder, relative to it and sorted; at least one.
struct ImageList {
  std::string folder;
  std::vector<std::string> files;
  LeftOut left_out = {};  ///< The other files.

  std::string notice(const ImageReader& reader) const;
  std::string path_of(int64_t index) const {
    return folder + "/" + files[static_cast<size_t>(index)];
  }
  std::string place_of(int64_t index) const { return path_of(index) + ": "; }
};
ImageList images_in(const std::string& folder);

/// Throws Error unless the images of one list are also in the other folder, at `key`, under the
/// same names.
void check_same_names(const Config& params, std::string_view key, const std::string& folder,
                      std::string_view other_key, const ImageList& images);

}  // namespace stepop
