#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/rot90.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/measure/tensor_statistics.h"

namespace stepop {
namespace {

/// Images in two sizes, for super-resolution: `hq` and, `scale` times smaller, `lq`.
///
/// Parameters: `hq`, a folder of PNG and JPEG images at any depth, or in its place `dataset`,
/// another one whose images `key` = image are the large ones; `lq`, a folder with the small
/// ones under the same names, by default none: they are made by bicubic reduction with
/// antialiasing, as MATLAB's imresize and Pillow do it; `scale` = 2; `crop`, pixels of a square
/// part of the large image, by default the whole image but for what `scale` does not divide, at its
/// right and lower border; `random` = true: the part lies anywhere, and is another one each time it
/// is seen, else in the middle; `flip` and `rotate` = false: half of the pairs are mirrored, turned
/// by a quarter; `channels` as ImageReader has them, for files.
///
/// An example holds `hq`, float [C, H, W] in [-1, 1], `lq`, float [C, H / scale, W / scale] in
/// [-1, 1], and of a folder the text `path`, relative to `hq`.
class PairedImages : public Dataset {
 public:
  explicit PairedImages(const Config& params)
      : scale_(params.get_at_least("scale", 1, 2)),
        crop_(params.get_at_least("crop", 0, 0)),
        is_random_(params.get("random", true)),
        flips_(params.get("flip", false)),
        rotates_(params.get("rotate", false)) {
    if (crop_ % scale_ != 0) {
      throw params.error("crop",
                         fmt::format("expected a multiple of scale, {}, found {}", scale_, crop_));
    }
    if (params.has("dataset")) {
      read_dataset(params);
    } else {
      read_folders(params);
    }
  }

  int64_t size() const override {
    return source_ ? source_->size() : static_cast<int64_t>(files_.size());
  }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    Example pair = source_ ? of_dataset(index, random) : of_folders(index);
    at::Tensor large = pair.tensors.at("hq");
    at::Tensor small = pair.tensors.at("lq");
    if (crop_ > 0) crop(large, small, place_of(pair), random);
    if (flips_ && random.below(2) == 1)
      turn(large, small, [](const at::Tensor& image) { return at::flip(image, {2}); });
    if (rotates_ && random.below(2) == 1)
      turn(large, small, [](const at::Tensor& image) { return at::rot90(image, 1, {1, 2}); });
    pair.tensors.set("hq", large.contiguous());
    pair.tensors.set("lq", small.contiguous());
    return pair;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  void read_dataset(const Config& params) {
    for (const char* key : {"hq", "lq"}) {
      if (!params.has(key)) continue;
      throw params.error(key, "expected either folders or a dataset, found both");
    }
    source_ = datasets().build(params, "dataset");
    key_ = params.get("key", "image");
  }

  void read_folders(const Config& params) {
    hq_ = get_folder(params, "hq");
    if (params.has("lq")) lq_ = get_folder(params, "lq");
    reader_.emplace(params);
    try {
      files_ = list_images(hq_);
    } catch (const std::filesystem::filesystem_error& error) {
      throw Error(
          fmt::format("{}: cannot be listed: {}", error.path1().string(), error.code().message()));
    }
    if (files_.empty()) {
      throw Error(
          fmt::format("{}: holds no images; they are looked for as .png, .jpg or .jpeg", hq_));
    }
    for (const auto& file : files_) {
      if (!lq_.empty() && !std::filesystem::exists(lq_ + "/" + file)) {
        throw params.error("lq",
                           fmt::format("{}/{}: there is no such file, and there is one of that "
                                       "name in hq",
                                       lq_, file));
      }
    }
  }

  Example of_dataset(int64_t index, Random& random) const {
    const Example example = source_->get(index, random);
    const at::Tensor* image = example.tensors.find(key_);
    if (image == nullptr || image->dim() != 3 || image->scalar_type() != at::kFloat) {
      throw Error(fmt::format(
          "PairedImages: expected a float32 image [C, H, W] under \"{}\", found "
          "{}; the dataset has: {}",
          key_, image == nullptr ? "none" : describe_tensor(*image), example.tensors.key_list()));
    }
    const at::Tensor large = multiple(*image);
    return {.tensors = {{"hq", large}, {"lq", reduced(large)}}, .texts = {}};
  }

  Example of_folders(int64_t index) const {
    const std::string& file = files_[static_cast<size_t>(index)];
    const at::Tensor large = multiple(reader_->read(hq_ + "/" + file));
    if (lq_.empty()) {
      return {.tensors = {{"hq", large}, {"lq", reduced(large)}}, .texts = {{"path", file}}};
    }
    const at::Tensor small = reader_->read(lq_ + "/" + file);
    const int64_t height = large.size(1) / scale_;
    const int64_t width = large.size(2) / scale_;
    if (small.size(1) != height || small.size(2) != width) {
      throw Error(fmt::format("{}: expected a size of {} x {}, a part of {} of {}/{}, found {}",
                              lq_ + "/" + file, height, width, scale_, hq_, file,
                              describe_tensor(small)));
    }
    return {.tensors = {{"hq", large}, {"lq", small}}, .texts = {{"path", file}}};
  }

  /// Without what `scale` does not divide.
  at::Tensor multiple(const at::Tensor& image) const {
    return image.narrow(1, 0, image.size(1) / scale_ * scale_)
        .narrow(2, 0, image.size(2) / scale_ * scale_);
  }

  at::Tensor reduced(const at::Tensor& large) const {
    return at::_upsample_bicubic2d_aa(large.unsqueeze(0),
                                      {large.size(1) / scale_, large.size(2) / scale_},
                                      /*align_corners=*/false)
        .squeeze(0)
        .clamp_(-1, 1);
  }

  /// For messages: the file and a colon, when it comes from one.
  std::string place_of(const Example& pair) const {
    const std::string* path = pair.texts.find("path");
    return path == nullptr ? "" : fmt::format("{}/{}: ", hq_, *path);
  }

  void crop(at::Tensor& large, at::Tensor& small, const std::string& place, Random& random) const {
    const int64_t side = crop_ / scale_;
    const int64_t down = small.size(1) - side;
    const int64_t right = small.size(2) - side;
    if (down < 0 || right < 0) {
      throw Error(fmt::format("{}too small for a part of {} x {} pixels: {}", place, crop_, crop_,
                              describe_tensor(large)));
    }
    const int64_t y = is_random_ ? random.below(down + 1) : down / 2;
    const int64_t x = is_random_ ? random.below(right + 1) : right / 2;
    small = small.narrow(1, y, side).narrow(2, x, side);
    large = large.narrow(1, y * scale_, crop_).narrow(2, x * scale_, crop_);
  }

  template <class Change>
  static void turn(at::Tensor& large, at::Tensor& small, const Change& change) {
    large = change(large);
    small = change(small);
  }

  std::unique_ptr<Dataset> source_;  ///< Null: the images are files.
  std::string key_;                  ///< Of an image in an example of it.
  std::string hq_;
  std::string lq_;  ///< Empty: made from the large ones.
  std::optional<ImageReader> reader_;
  int64_t scale_;
  int64_t crop_;  ///< 0: the whole image.
  bool is_random_;
  bool flips_;
  bool rotates_;
  std::vector<std::string> files_;
};

STEPOP_REGISTER_DATASET(
    PairedImages,
    {"Images in two sizes, for super-resolution.",
     {{"hq", "null", "folder of the large images; null: they are those of dataset", true},
      {"dataset", "null", "another dataset, such as {class: Figures, ...}"},
      {"key", "image", "of the images in its examples"},
      {"lq", "null", "folder of the small ones; null: made by bicubic reduction", true},
      {"scale", "2", "how many times larger"},
      {"crop", "null", "pixels of a square part of the large image; null: the whole"},
      {"random", "true", "the part lies anywhere; false: in the middle"},
      {"flip", "false", "half of the pairs are mirrored"},
      {"rotate", "false", "half of the pairs are turned by a quarter"},
      {"channels", "null", "1 (grey) or 3 (colour); null: as stored"}}});

}  // namespace
}  // namespace stepop
