#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

/// The names of the class folders, sorted.
std::vector<std::string> list_classes(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !is_hidden(entry.path())) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The `classes` that the config lists. Throws if a class occurs twice or has no folder.
std::vector<std::string> get_classes(const Config& params, const std::string& folder) {
  const auto names = params.get<std::vector<std::string>>("classes");
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string key = fmt::format("classes/{}", i);
    if (std::count(names.begin(), names.end(), names[i]) > 1) {
      throw params.error(key, fmt::format("the class \"{}\" is named twice", names[i]));
    }
    if (!fs::is_directory(fs::path(folder) / names[i])) {
      throw params.error(key, fmt::format("no such folder: {}/{}", folder, names[i]));
    }
  }
  return names;
}

/// A folder with one folder of PNG and JPEG images for each class: `path/cat/1.png`.
///
/// Parameters: `path`, the folder; `classes`, the class folders in the order of their index, by
/// default all folders sorted by name; `size` and `channels` as in ImageReader. Images are found by
/// their extension, at any depth below a class folder, in the order of their names. Hidden files
/// and folders, and images that lie beside the class folders, are left out. With `classes: []`
/// there are no classes: all images at any depth below the folder.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], `class`, int64 [], if there are classes,
/// and the text `path`, relative to the folder. Throws Error when there are no images. Without the
/// parameter `classes`, a class folder without images is an error too: a missing class would
/// silently change the index of all later classes.
class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const Config& params);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Example get(int64_t index, Random& random) const override;
  /// The classes, int64 [size()], for the key "class".
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override {
    return has_classes_ ? std::vector<std::string>{"class"} : std::vector<std::string>{};
  }
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
  bool has_classes_ = true;
  std::vector<File> files_;
};

ImageFolder::ImageFolder(const Config& params)
    : folder_(get_folder(params, "path")), reader_(params) {
  const bool are_named = params.has("classes");
  try {
    const auto names = are_named ? get_classes(params, folder_) : list_classes(folder_);
    has_classes_ = !are_named || !names.empty();
    if (!has_classes_) {
      for (const auto& file : list_images(folder_, "")) files_.push_back({file, 0});
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const auto files = list_images(folder_, names[i]);
      if (files.empty() && !are_named) {
        throw Error(
            fmt::format("{}/{}: this class folder holds no PNG or JPEG image; add some, or "
                        "name the classes with \"classes\"",
                        folder_, names[i]));
      }
      for (const auto& file : files) files_.push_back({file, static_cast<int64_t>(i)});
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(
        fmt::format("{}: cannot be listed: {}", error.path1().string(), error.code().message()));
  }
  if (files_.empty()) {
    throw Error(fmt::format(
        "{}: holds no images; they are looked for as {}NAME.png, .jpg or .jpeg below it", folder_,
        has_classes_ ? "CLASS/" : ""));
  }
}

Example ImageFolder::get(int64_t index, Random& /*random*/) const {
  check_index(index, size());
  const File& file = files_[static_cast<size_t>(index)];
  Example example{.tensors = {{"image", reader_.read(folder_ + "/" + file.path)}},
                  .texts = {{"path", file.path}}};
  if (has_classes_) example.tensors.set("class", at::scalar_tensor(file.class_index, at::kLong));
  return example;
}

at::Tensor ImageFolder::labels(std::string_view key) const {
  if (key != "class" || !has_classes_) return {};
  at::Tensor labels = at::empty({size()}, at::kLong);
  auto* classes = labels.mutable_data_ptr<int64_t>();
  for (const File& file : files_) *classes++ = file.class_index;
  return labels;
}

STEPOP_REGISTER_DATASET(ImageFolder,
                        {"PNG and JPEG images, one folder for each class.",
                         {{"path", "", "folder of the class folders", true},
                          {"classes", "null",
                           "class folders in the order of their index; null: all, sorted by name; "
                           "[]: images without classes"},
                          {"size", "null", "[H, W] to resize to; null: as stored"},
                          {"channels", "null",
                           "1 (grey), 3 (colour) or 4 (with alpha); null: as stored"}}});

}  // namespace
}  // namespace stepop
