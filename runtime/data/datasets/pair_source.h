#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// Where PairedImages has its pairs from: an example holds two images, float [C, H, W] in [-1, 1],
/// and of a file the text `path`.
class PairSource {
 public:
  virtual ~PairSource() = default;
  virtual int64_t size() const = 0;
  virtual Example get(int64_t index, Random& random) const = 0;
  /// For messages: the example's file and a colon; empty when it comes from none.
  virtual std::string place_of(int64_t index) const = 0;
};

/// Pairs `hq` and `lq`, which is `scale` times smaller, from the folders of these names, or reduced
/// from the images of `dataset` (built from it, or null).
std::unique_ptr<PairSource> make_scaled_pairs(const Config& params, int64_t scale,
                                              std::unique_ptr<Dataset> dataset);

/// Pairs `input` and `target` of one size: halves of the files in `folder`, files of one name in
/// the folders `input` and `target`, or those of `dataset`.
std::unique_ptr<PairSource> make_translation_pairs(const Config& params,
                                                   std::unique_ptr<Dataset> dataset);

/// The images in the folder at `key` of the config, relative to it and sorted, at least one.
struct ImageList {
  std::string folder;
  std::vector<std::string> files;

  std::string path_of(int64_t index) const {
    return folder + "/" + files[static_cast<size_t>(index)];
  }
  std::string place_of(int64_t index) const { return path_of(index) + ": "; }
};
ImageList get_images(const Config& params, std::string_view key);

/// Throws Error unless the images of one list are also in the other folder, at `key`, under the
/// same names.
void check_same_names(const Config& params, std::string_view key, const std::string& folder,
                      std::string_view other_key, const ImageList& images);

}  // namespace stepop
