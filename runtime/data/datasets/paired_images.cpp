#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/rot90.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
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
/// Parameters: `hq`, a folder of PNG and JPEG images at any depth; `lq`, a folder with the small
/// ones under the same names, by default none: they are made by bicubic reduction with
/// antialiasing, as MATLAB's imresize and Pillow do it; `scale` = 2; `crop`, pixels of a square
/// part of the large image, by default the whole image but for what `scale` does not divide, at its
/// right and lower border; `random` = true: the part lies anywhere, and is another one each time it
/// is seen, else in the middle; `flip` and `rotate` = false: half of the pairs are mirrored, turned
/// by a quarter; `channels` as ImageReader has them.
///
/// An example holds `hq`, float [C, H, W] in [-1, 1], `lq`, float [C, H / scale, W / scale] in
/// [-1, 1], and the text `path`, relative to `hq`.
class PairedImages : public Dataset {
 public:
  explicit PairedImages(const Config& params)
      : hq_(get_folder(params, "hq")),
        lq_(params.has("lq") ? get_folder(params, "lq") : ""),
        reader_(params),
        scale_(params.get_at_least("scale", 1, 2)),
        crop_(params.get_at_least("crop", 0, 0)),
        is_random_(params.get("random", true)),
        flips_(params.get("flip", false)),
        rotates_(params.get("rotate", false)) {
    if (crop_ % scale_ != 0) {
      throw params.error("crop",
                         fmt::format("expected a multiple of scale, {}, found {}", scale_, crop_));
    }
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

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    const std::string& file = files_[static_cast<size_t>(index)];
    at::Tensor large = reader_.read(hq_ + "/" + file);
    at::Tensor small = lq_.empty() ? at::Tensor() : reader_.read(lq_ + "/" + file);
    large = large.narrow(1, 0, large.size(1) / scale_ * scale_)
                .narrow(2, 0, large.size(2) / scale_ * scale_);
    const int64_t height = large.size(1) / scale_;
    const int64_t width = large.size(2) / scale_;
    if (small.defined() && (small.size(1) != height || small.size(2) != width)) {
      throw Error(fmt::format("{}: expected a size of {} x {}, a part of {} of {}/{}, found {}",
                              lq_ + "/" + file, height, width, scale_, hq_, file,
                              describe_tensor(small)));
    }
    if (!small.defined()) {
      small = at::_upsample_bicubic2d_aa(large.unsqueeze(0), {height, width},
                                         /*align_corners=*/false)
                  .squeeze(0)
                  .clamp_(-1, 1);
    }
    if (crop_ > 0) crop(large, small, file, random);
    if (flips_ && random.below(2) == 1)
      turn(large, small, [](const at::Tensor& image) { return at::flip(image, {2}); });
    if (rotates_ && random.below(2) == 1)
      turn(large, small, [](const at::Tensor& image) { return at::rot90(image, 1, {1, 2}); });
    return {.tensors = {{"hq", large.contiguous()}, {"lq", small.contiguous()}},
            .texts = {{"path", file}}};
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  void crop(at::Tensor& large, at::Tensor& small, const std::string& file, Random& random) const {
    const int64_t side = crop_ / scale_;
    const int64_t down = small.size(1) - side;
    const int64_t right = small.size(2) - side;
    if (down < 0 || right < 0) {
      throw Error(fmt::format("{}/{}: too small for a part of {} x {} pixels: {}", hq_, file, crop_,
                              crop_, describe_tensor(large)));
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

  std::string hq_;
  std::string lq_;  ///< Empty: made from the large ones.
  ImageReader reader_;
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
     {{"hq", "", "folder of the large images", true},
      {"lq", "null", "folder of the small ones; null: made by bicubic reduction", true},
      {"scale", "2", "how many times larger"},
      {"crop", "null", "pixels of a square part of the large image; null: the whole"},
      {"random", "true", "the part lies anywhere; false: in the middle"},
      {"flip", "false", "half of the pairs are mirrored"},
      {"rotate", "false", "half of the pairs are turned by a quarter"},
      {"channels", "null", "1 (grey) or 3 (colour); null: as stored"}}});

}  // namespace
}  // namespace stepop
