#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "runtime/core/formats/stored_array.h"
#include "runtime/core/formats/zip_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/core/system/read_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {
namespace {

/// One of CelebA's lists. Each row is an image's name and whole numbers.
struct CelebaList {
  std::string path;
  size_t columns = 0;
  std::vector<std::string> names;
  std::vector<int64_t> numbers;  ///< [names.size() * columns]
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// `title_lines`: the lists of attributes and landmarks begin with two, the number of rows and the
/// names of the columns.
CelebaList read_celeba_list(const std::string& path, size_t columns, int title_lines) {
  const std::string text = read_file(path);
  CelebaList list;
  list.path = path;
  list.columns = columns;
  int64_t line_number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto words = words_of(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (++line_number <= title_lines || words.empty()) continue;
    if (words.size() != columns + 1) {
      throw Error(
          fmt::format("{}:{}: expected the name of an image and {} number{}, found {} words", path,
                      line_number, columns, columns == 1 ? "" : "s", words.size()));
    }
    list.names.emplace_back(words[0]);
    for (size_t i = 1; i < words.size(); ++i) {
      int64_t number = 0;
      const auto [rest, status] =
          std::from_chars(words[i].data(), words[i].data() + words[i].size(), number);
      if (status != std::errc() || rest != words[i].data() + words[i].size()) {
        throw Error(fmt::format("{}:{}: expected a whole number, found \"{}\"", path, line_number,
                                words[i]));
      }
      list.numbers.push_back(number);
    }
  }
  if (list.names.empty()) throw Error(path + ": lists no images");
  return list;
}

/// CelebA as its site distributes it. The text files are in one folder, or in `Anno` and `Eval`
/// below it. The images are in the folder `img_align_celeba` or in the archive
/// `img_align_celeba.zip`, in the same folder or in `Img` below it.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], and the text `path`, the image's name.
/// Each list that is present adds a key: `attributes`, float [40] of 0 and 1; `identity`, int64 [];
/// `landmarks`, float [5, 2], x and y in pixels of the image as it is stored.
class CelebA : public Dataset {
 public:
  struct Params {
    InputFolder path;
    std::string split = "train";
    std::optional<int64_t> crop;
    ImageOptions images;

    void declare(Parameters& p) {
      p.require("path", path,
                "folder of list_eval_partition.txt and img_align_celeba, or of Anno, Eval and Img");
      p.add("split", split, "train, validation, test or all",
            one_of({"train", "validation", "test", "all"}));
      p.add("crop", crop, "side of the square in the middle that is taken; null: all", at_least(1));
      images.declare_size(p);
      images.declare_channels(p);
    }
  };

  CelebA(const Params& params, const Config& config)
      : folder_(params.path.text),
        size_(params.images.size),
        channels_(params.images.channels),
        crop_(params.crop.value_or(0)) {
    const std::string& split = params.split;
    const std::vector<std::string> splits = {"train", "validation", "test"};
    const auto wanted = std::find(splits.begin(), splits.end(), split) - splits.begin();
    const std::string partition = find({"list_eval_partition.txt"}, {"", "Eval/"});
    if (partition.empty()) {
      throw config.error("path",
                         folder_ + " has no list_eval_partition.txt, nor a folder Eval with it");
    }
    const CelebaList parts = read_celeba_list(partition, 1, 0);
    for (size_t i = 0; i < parts.names.size(); ++i) {
      if (split == "all" || parts.numbers[i] == wanted) names_.push_back(parts.names[i]);
    }
    if (names_.empty())
      throw Error(fmt::format("{}: no image is of the split {}", partition, split));
    open_images(config);
    add_list("attributes", "list_attr_celeba.txt", 40, 2);
    add_list("identity", "identity_CelebA.txt", 1, 0);
    add_list("landmarks", "list_landmarks_align_celeba.txt", 10, 2);
  }

  int64_t size() const override { return static_cast<int64_t>(names_.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    const std::string& name = names_[static_cast<size_t>(index)];
    Example example{.tensors = {{"image", read_image_of(name)}}, .texts = {{"path", name}}};
    for (const auto& [key, values] : labels_) {
      example.tensors.set(key, values.select(0, index).clone());
    }
    return example;
  }

  at::Tensor labels(std::string_view key) const override {
    const auto found = labels_.find(std::string(key));
    return found != labels_.end() ? found->second : at::Tensor();
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& [key, values] : labels_) keys.push_back(key);
    return keys;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  std::string find(const std::vector<std::string>& names,
                   const std::vector<std::string>& folders) const {
    std::error_code ignored;
    for (const auto& below : folders) {
      for (const auto& name : names) {
        std::string path = folder_ + "/" + below + name;
        if (std::filesystem::exists(path, ignored)) return path;
      }
    }
    return {};
  }

  void open_images(const Config& params) {
    images_ = find({"img_align_celeba", "img_align_celeba.zip"}, {"", "Img/"});
    if (images_.empty()) {
      throw params.error("path", folder_ +
                                     " has no folder img_align_celeba and no "
                                     "img_align_celeba.zip, nor a folder Img with one");
    }
    if (!images_.ends_with(".zip")) return;
    archive_ = map_source(images_);
    for (ZipEntry& entry : list_zip(archive_->bytes(), images_)) {
      const std::string name = std::filesystem::path(entry.name).filename().string();
      entries_.emplace(name, std::move(entry));
    }
  }

  /// Takes the rows of this split from a list, if the list is present.
  void add_list(const std::string& key, const char* file, size_t columns, int title_lines) {
    const std::string path = find({file}, {"", "Anno/"});
    if (path.empty()) return;
    const CelebaList list = read_celeba_list(path, columns, title_lines);
    std::unordered_map<std::string_view, size_t> rows;
    for (size_t i = 0; i < list.names.size(); ++i) rows.emplace(list.names[i], i);
    const bool is_identity = key == "identity";
    at::Tensor values = at::empty({size(), static_cast<int64_t>(columns)}, at::kLong);
    auto* value = values.mutable_data_ptr<int64_t>();
    for (const auto& name : names_) {
      const auto row = rows.find(name);
      if (row == rows.end()) throw Error(fmt::format("{}: does not list {}", path, name));
      value = std::copy_n(list.numbers.begin() + static_cast<std::ptrdiff_t>(row->second * columns),
                          columns, value);
    }
    if (is_identity) {
      labels_[key] = values.squeeze(1);
    } else if (key == "attributes") {
      labels_[key] = values.gt(0).to(at::kFloat);
    } else {
      labels_[key] = values.to(at::kFloat).view({size(), 5, 2});
    }
  }

  at::Tensor read_image_of(const std::string& name) const {
    const std::string where = images_ + "/" + name;
    at::Tensor image;
    if (archive_ == nullptr) {
      image = read_image(where, channels_);
    } else {
      const auto entry = entries_.find(name);
      if (entry == entries_.end()) throw Error(where + ": the archive has no such image");
      archive_->check();
      const std::string_view bytes = archive_->bytes();
      image = decode_image(entry->second.is_stored
                               ? std::string(bytes.substr(entry->second.begin, entry->second.size))
                               : unpack_zip_entry(bytes, entry->second, where),
                           where, channels_);
    }
    if (crop_ > 0) {
      const int64_t height = image.size(1);
      const int64_t width = image.size(2);
      if (crop_ > height || crop_ > width) {
        throw Error(fmt::format("{}: \"crop: {}\" is larger than the image, {} x {} pixels", where,
                                crop_, width, height));
      }
      image = image.slice(1, (height - crop_) / 2, (height - crop_) / 2 + crop_)
                  .slice(2, (width - crop_) / 2, (width - crop_) / 2 + crop_)
                  .contiguous();
    }
    return size_.empty() ? image : resize_image(image, size_);
  }

  std::string folder_;
  std::vector<int64_t> size_;  ///< [H, W], or empty.
  int64_t channels_;           ///< 0 keeps the stored channels.
  int64_t crop_;               ///< 0 does not crop.
  std::vector<std::string> names_;
  std::map<std::string, at::Tensor> labels_;  ///< By key, [size(), ...].
  std::string images_;                        ///< A folder or an archive.
  std::shared_ptr<const StoredArray::Source> archive_;
  std::unordered_map<std::string, ZipEntry> entries_;  ///< The archive's entries by the images'
                                                       ///< names.
};

STEPOP_REGISTER_DATASET(
    CelebA, {"CelebA from the files of its site: aligned faces, 40 attributes, identities."});

}  // namespace
}  // namespace stepop
