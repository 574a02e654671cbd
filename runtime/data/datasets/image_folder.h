#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {

/// A folder with one folder of PNG and JPEG images for each class: `path/cat/1.png`.
///
/// Parameters: `path`, the folder; `classes`, the class folders in the order of their index, by
/// default all of them sorted by name; `size` and `channels` as ImageReader has them. Images are
/// found by their extension, at any depth below a class folder, in the order of their names.
/// Hidden files and folders, and images that lie beside the class folders, are left out.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], `class`, int64 [], and the text `path`,
/// relative to the folder. Throws Error when there are no images, or none of a class that
/// `classes` does not name: a missing one would silently change the index of all that follow.
class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const Config& params);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Example get(int64_t index, Random& random) const override;
  /// For "class" the classes, int64 [size()].
  at::Tensor labels(std::string_view key) const override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  struct File {
    std::string path;  ///< Relative to `folder_`.
    int64_t class_index;
  };

  std::string folder_;
  ImageReader reader_;
  std::vector<File> files_;
};

}  // namespace stepop
