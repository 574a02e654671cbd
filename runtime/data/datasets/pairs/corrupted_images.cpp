#include <ATen/TensorOperators.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/pictures/exif.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/data/augmentations/colour.h"
#include "runtime/data/augmentations/corruptions.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/pairs/pair_source.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

/// Large images, `hq`, and smaller, corrupted ones, `lq`, that are made of them, with how strongly
/// each was corrupted. All keys are those of DL-Art-School's `imagefolder`; README.md lists them.
class CorruptedImages : public Dataset {
 public:
  struct Params {
    std::vector<InputFolder> paths;
    std::optional<std::vector<int64_t>> weights;
    int64_t scale = 1;
    std::optional<int64_t> target_size;
    int64_t force_multiple = 1;
    std::optional<int64_t> center_crop;
    bool force_square = true;
    bool disable_flip = false;
    bool skip_lq = false;
    double jitter = 0;
    bool corrupts_early = false;
    int64_t early_factor = 1;
    ImageOptions images;

    void declare(Parameters& p);
  };

  CorruptedImages(const Params& params, const Config& config)
      : scale_(params.scale),
        target_size_(params.target_size.value_or(0)),
        multiple_(params.force_multiple * scale_),
        center_crop_(params.center_crop.value_or(0)),
        early_factor_(params.early_factor),
        is_square_(params.force_square),
        is_flipped_(!params.disable_flip),
        has_small_(!params.skip_lq),
        corrupts_early_(params.corrupts_early),
        jitter_(params.jitter),
        corruptions_(config),
        has_exif_(params.images.exif) {
    if (target_size_ % multiple_ != 0) {
      throw config.error("target_size", fmt::format("expected a multiple of {}, scale times "
                                                    "force_multiple, found {}",
                                                    multiple_, target_size_));
    }
    if (scale_ % early_factor_ != 0) {
      throw config.error(
          "corrupt_before_downsize_factor",
          fmt::format("expected a divisor of scale, {}, found {}", scale_, early_factor_));
    }
    read_folders(params, config);
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  std::string notice() const override {
    return joined_notices({left_out_, has_exif_ ? "" : orientation_notice("", files_)});
  }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    const std::string& path = files_[static_cast<size_t>(index)];
    const at::Tensor large = large_image(path, random);
    Example example{.tensors = {{"hq", from_unit_range(large)}}, .texts = {{"path", path}}};
    if (!has_small_) return example;
    std::vector<float> strengths;
    at::Tensor small = large;
    if (corrupts_early_) {
      small = corruptions_.apply(reduced_image(small, early_factor_), random, strengths);
      small = reduced_image(small, scale_ / early_factor_);
    } else {
      small = corruptions_.apply(reduced_image(small, scale_), random, strengths);
    }
    example.tensors.set("lq", from_unit_range(small));
    example.tensors.set("corruption_entropy", at::tensor(strengths));
    return example;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  static at::Tensor from_unit_range(const at::Tensor& image) {
    return image.mul(2).sub_(1).contiguous();
  }
  static at::Tensor reduced_image(const at::Tensor& image, int64_t factor) {
    return resize_by_area(image, {image.size(1) / factor, image.size(2) / factor});
  }
  void read_folders(const Params& params, const Config& config) {
    const size_t count = params.paths.size();
    const auto weights = params.weights.value_or(std::vector<int64_t>(count, 1));
    if (weights.size() != count || std::ranges::any_of(weights, [](auto w) { return w < 0; })) {
      throw config.error("weights",
                         fmt::format("expected how often each of the {} folders counts", count));
    }
    for (size_t i = 0; i < count; ++i) {
      ImageList images = images_in(params.paths[i].text);
      // Beside the parts of an image, that is the whole.
      std::erase_if(images.files, [&](const auto& file) {
        const bool is_whole = file.ends_with("ref.jpg");
        if (is_whole) images.left_out.add(file);
        return is_whole;
      });
      for (int64_t time = 0; time < weights[i]; ++time) {
        for (const auto& file : images.files) files_.push_back(images.folder + "/" + file);
      }
      left_out_ = joined_notices(
          {left_out_, images.left_out.notice(images.folder, std::ssize(images.files))});
    }
  }

  /// The large image [3, H, W] in [0, 1].
  at::Tensor large_image(const std::string& path, Random& random) const {
    at::Tensor image = read_stored_image(path, 3);
    if (has_exif_) image = turned_upright(image, exif_orientation_of_file(path));
    image = image.scalar_type() == at::kByte ? image.to(at::kFloat).contiguous().div_(255)
                                             : image.add(1).div_(2);
    if (center_crop_ > 0) {
      const int64_t height = std::min(center_crop_, image.size(1));
      const int64_t width = std::min(center_crop_, image.size(2));
      image = image.narrow(1, image.size(1) / 2 - height / 2, height)
                  .narrow(2, image.size(2) / 2 - width / 2, width);
    }
    if (is_flipped_ && random.below(2) == 1) image = at::flip(image, {2});
    if (is_square_) {
      const int64_t side = std::min(image.size(1), image.size(2));
      image = image.narrow(1, (image.size(1) - side) / 2, side)
                  .narrow(2, (image.size(2) - side) / 2, side);
    }
    if (jitter_ > 0) image = with_jitter(image, jitter_, random);
    if (target_size_ > 0 && image.size(1) != target_size_) {
      image = resize_by_area(image.contiguous(), {target_size_, target_size_});
    }
    const int64_t height = image.size(1) / multiple_ * multiple_;
    const int64_t width = image.size(2) / multiple_ * multiple_;
    if (height == 0 || width == 0) {
      throw Error(fmt::format("{}: too small: {} x {} pixels, and scale times force_multiple is {}",
                              path, image.size(1), image.size(2), multiple_));
    }
    return image.narrow(1, 0, height).narrow(2, 0, width).contiguous();
  }

  int64_t scale_;
  int64_t target_size_;  ///< 0 keeps the stored size.
  int64_t multiple_;     ///< That of the large image's sides.
  int64_t center_crop_;
  int64_t early_factor_;
  bool is_square_;
  bool is_flipped_;
  bool has_small_;
  bool corrupts_early_;
  double jitter_;
  Corruptions corruptions_;
  bool has_exif_;
  std::vector<std::string> files_;
  std::string left_out_;  ///< The notice about files that are left out.
};

void CorruptedImages::Params::declare(Parameters& p) {
  const Config* config = p.describe_required("paths", "path | list of path",
                                             "a folder of images, or a list of folders");
  if (config != nullptr) {
    const Value* value = config->peek("paths");
    const bool is_list = value != nullptr && value->is_list();
    const size_t count = is_list ? value->as_list().size() : 0;
    if (!is_list) paths.push_back({get_folder(*config, "paths")});
    for (size_t i = 0; i < count; ++i) {
      paths.push_back({get_folder(*config, fmt::format("paths/{}", i))});
    }
  }
  p.add("weights", weights, "how often each folder's images count; null: once");
  p.add("scale", scale, "how many times smaller lq is", at_least(1));
  p.add("target_size", target_size, "hq is resized to a square of this side; null: as stored",
        at_least(0));
  p.add("force_multiple", force_multiple, "the sides of lq are cut to a multiple", at_least(1));
  p.add("center_crop_hq_sz", center_crop, "first, a square of this side is cut out of the middle",
        at_least(0));
  p.add("force_square", force_square, "a square is cut out of the middle");
  p.add("disable_flip", disable_flip, "by default, half of the images are mirrored");
  p.add("skip_lq", skip_lq, "true: hq alone");
  p.add("all_image_color_jitter", jitter, "how much the colours of hq change, 0 to 1",
        at_least(0).at_most(1));
  p.add("corrupt_before_downsize", corrupts_early,
        "true: a copy of hq is corrupted, then made small");
  p.add("corrupt_before_downsize_factor", early_factor, "how many times smaller it is made before",
        at_least(1));
  images.declare_exif(p);
  for (const Parameter& row : Corruptions::parameters()) p.describe(row);
}

STEPOP_REGISTER_DATASET(CorruptedImages,
                        {"Large images, and small, corrupted ones that are made of them."});

}  // namespace
}  // namespace stepop
