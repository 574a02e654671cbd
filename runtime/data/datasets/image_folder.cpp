#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/datasets/class_files.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

/// A folder with one folder of PNG and JPEG images for each class: `path/cat/1.png`.
/// Images are found by their extension, at any depth below
/// a class folder, in the order of their names. Hidden files and folders are passed over; other
/// files, and images that lie beside the class folders, are left out, which `notice` says.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], `class`, int64 [], if there are classes,
/// and the text `path`, relative to the folder. Throws Error as list_class_files does.
class ImageFolder : public Dataset {
 public:
  struct Params {
    InputFolder path;
    ClassFolders folders;
    ImageOptions images;

    void declare(Parameters& p) {
      p.require("path", path, "folder of the class folders");
      folders.declare(p, "images");
      images.declare(p);
    }
  };

  ImageFolder(const Params& params, const Config& config)
      : folder_(params.path.text),
        reader_(params.images),
        files_(list_class_files(
            config, folder_, params.folders,
            {image_endings(), "PNG or JPEG image", "images", "NAME.png, .jpg or .jpeg"})) {}

  int64_t size() const override { return static_cast<int64_t>(files_.paths.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    const std::string& path = files_.paths[static_cast<size_t>(index)];
    Example example{.tensors = {{"image", reader_.read(folder_ + "/" + path)}},
                    .texts = {{"path", path}}};
    if (files_.classes.defined()) example.tensors.set("class", files_.classes[index].clone());
    return example;
  }

  /// The classes, int64 [size()], for the key "class".
  at::Tensor labels(std::string_view key) const override {
    return key == "class" ? files_.classes : at::Tensor();
  }
  std::vector<std::string> label_keys() const override {
    if (!files_.classes.defined()) return {};
    return {"class"};
  }
  std::string notice() const override {
    return joined_notices({files_.notice, files_.left_out.notice(folder_, size()),
                           reader_.notice(folder_, files_.paths)});
  }
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  std::string folder_;
  ImageReader reader_;
  ClassFiles files_;
};

STEPOP_REGISTER_DATASET(ImageFolder, {"PNG and JPEG images, one folder for each class."});

}  // namespace
}  // namespace stepop
