#include <ATen/ops/flip.h>
#include <ATen/ops/rot90.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/augmentations/input_augmentations.h"
#include "runtime/data/augmentations/joint_augmentations.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/pairs/pair_source.h"

namespace stepop {
namespace {

/// Pairs of images: `input` and `target` of the same size, for translation as in pix2pix, or `hq`
/// and `lq`, which is `scale` times smaller, for super-resolution. All PNG and JPEG files of a
/// folder are taken, at any depth, sorted. An example that comes from files has the text `path`.
///
/// `input` and `target` are the left and right half of each file in `folder`; or files of the same
/// name in the folders `input` and `target`; or the images of a `dataset` that has both.
/// `direction` = AtoB, or BtoA, which swaps them. `load_size` is the side of the square to which
/// each image is resized, by bicubic interpolation with antialiasing like Pillow's; by default,
/// images keep their stored size. With a folder `mask` in place of `target` there are `input` and
/// `mask`, int64 [H, W] from PNG files of class numbers, as in read_mask, whose names are those of
/// the images up to the ending; images without a mask are left out.
///
/// `hq` is a folder, or the images `key` = image of a `dataset`. `lq` is a folder with the small
/// images under the same names; by default they are made by bicubic reduction with antialiasing,
/// like MATLAB's imresize and Pillow's. `scale` = 2; rows and columns beyond a multiple of `scale`
/// are cut off at the lower and right border; `multiple` = 1 does the same for `lq`. `flip` and
/// `rotate` = false: half of the pairs are mirrored, or turned by a quarter.
///
/// For both kinds of pairs: `crop`, the side in pixels of a square part of the large image, by
/// default the whole image; `random` = true places the part anywhere, each time anew, and false
/// places it in the middle; `augmentations`, by default none: `both` as in JointAugmentations,
/// `input`, for the input or the small image only, as in InputAugmentations; `channels` as in
/// ImageReader, for files.
class PairedImages : public Dataset {
 public:
  explicit PairedImages(const Config& params);

  int64_t size() const override { return source_->size(); }
  std::string notice() const override { return source_->notice(); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    Example pair = source_->get(index, random);
    at::Tensor large = pair.tensors.at(large_key_);
    at::Tensor small = pair.tensors.at(small_key_);
    if (multiple_ > 1) cut(large, small, index);
    if (crop_ > 0) crop(large, small, index, random);
    if (flips_ && random.below(2) == 1)
      turn(large, small, [](const at::Tensor& image) { return at::flip(image, {2}); });
    if (rotates_ && random.below(2) == 1)
      turn(large, small, [](const at::Tensor& image) { return at::rot90(image, 1, {1, 2}); });
    if (joint_) joint_->apply(large, small, random);
    if (input_) {
      at::Tensor& input = is_scaled_ ? small : large;
      input = input_->apply(input, random);
    }
    pair.tensors.set(large_key_, large.contiguous());
    pair.tensors.set(small_key_, small.contiguous());
    return pair;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    if (is_scaled_) return ImageReader::collate(examples, std::move(indices));
    try {
      return stepop::collate(examples, std::move(indices));
    } catch (const Error& error) {
      throw Error(
          fmt::format("{}; \"load_size: 256\" and \"channels: 3\" in the dataset's config make "
                      "its images alike",
                      error.what()));
    }
  }

 private:
  void read_scaled(const Config& params, std::unique_ptr<Dataset> dataset);

  /// Cuts the lower and right borders to multiples.
  void cut(at::Tensor& large, at::Tensor& small, int64_t index) const {
    const int64_t height = small.size(1) / multiple_ * multiple_;
    const int64_t width = small.size(2) / multiple_ * multiple_;
    if (height == 0 || width == 0) {
      throw Error(fmt::format("{}smaller than multiple, {} pixels: {}", source_->place_of(index),
                              multiple_, describe_tensor(small)));
    }
    small = small.narrow(1, 0, height).narrow(2, 0, width);
    large = large.narrow(1, 0, height * scale_).narrow(2, 0, width * scale_);
  }

  void crop(at::Tensor& large, at::Tensor& small, int64_t index, Random& random) const {
    const int64_t side = crop_ / scale_;
    const int64_t down = small.size(-2) - side;
    const int64_t right = small.size(-1) - side;
    if (down < 0 || right < 0) {
      throw Error(fmt::format("{}too small for a part of {} x {} pixels: {}",
                              source_->place_of(index), crop_, crop_, describe_tensor(large)));
    }
    const int64_t y = is_random_ ? random.below(down + 1) : down / 2;
    const int64_t x = is_random_ ? random.below(right + 1) : right / 2;
    small = small.narrow(-2, y, side).narrow(-1, x, side);
    large = large.narrow(-2, y * scale_, crop_).narrow(-1, x * scale_, crop_);
  }

  template <class Change>
  static void turn(at::Tensor& large, at::Tensor& small, const Change& change) {
    large = change(large);
    small = change(small);
  }

  bool is_scaled_ = true;  ///< The pairs are hq and lq; otherwise input and target, which have the
                           ///< same size.
  std::string large_key_ = "hq";
  std::string small_key_ = "lq";
  std::unique_ptr<PairSource> source_;
  int64_t scale_ = 1;
  int64_t multiple_ = 1;  ///< That of the small image's sides.
  int64_t crop_;          ///< 0 takes the whole image.
  bool is_random_;
  bool flips_ = false;
  bool rotates_ = false;
  std::optional<JointAugmentations> joint_;
  std::optional<InputAugmentations> input_;
};

/// Whether the examples of a dataset are pairs themselves.
bool has_pairs(const Dataset& dataset) {
  if (dataset.size() == 0) return false;
  Random random(0);
  const Example example = dataset.get(0, random);
  return example.tensors.find("input") != nullptr && example.tensors.find("target") != nullptr;
}

/// Throws unless the config names exactly one source of images.
void check_sources(const Config& params) {
  std::vector<std::string> found;
  if (params.has("hq") || params.has("lq")) found.emplace_back("hq");
  if (params.has("folder")) found.emplace_back("folder");
  if (params.has("input") || params.has("target") || params.has("mask")) {
    found.emplace_back(params.has("mask") ? "input and mask" : "input and target");
  }
  if (params.has("dataset")) found.emplace_back("dataset");
  if (found.size() == 1) return;
  constexpr const char* kSources = "folder, input and target, input and mask, hq, or dataset";
  if (found.empty()) {
    throw params.error("", fmt::format("expected where the images are: {}", kSources));
  }
  throw params.error(
      "", fmt::format("expected one of {}, found {}", kSources, fmt::join(found, " and ")));
}

void check_is_map(const Config& params, const char* key) {
  if (!params.has(key) || params.peek(key)->is_map()) return;
  throw params.error(key, fmt::format("expected a map of chances and strengths, found {}",
                                      params.peek(key)->describe()));
}

/// Throws for what changes images alone.
void check_masks(const Config& params) {
  for (const char* key : {"target", "direction"}) {
    if (params.has(key)) throw params.error(key, "not with mask, which is the target");
  }
  if (!params.has("augmentations")) return;
  throw params.error("augmentations",
                     "not with mask; an Augment around the pairs moves masks with their images: "
                     "{class: Augment, images: [input], masks: [mask], augmentations: [...], "
                     "dataset: {class: PairedImages, ...}}");
}

PairedImages::PairedImages(const Config& params)
    : crop_(params.get_at_least("crop", 0, 0)), is_random_(params.get("random", true)) {
  check_sources(params);
  std::unique_ptr<Dataset> dataset;
  if (params.has("dataset")) dataset = datasets().build(params, "dataset");
  is_scaled_ = params.has("hq") || params.has("lq") ||
               (dataset != nullptr && (params.has("key") || !has_pairs(*dataset)));
  if (is_scaled_) {
    read_scaled(params, std::move(dataset));
  } else {
    large_key_ = "input";
    small_key_ = params.has("mask") ? "mask" : "target";
    if (params.has("mask")) check_masks(params);
    source_ = make_translation_pairs(params, std::move(dataset));
  }
  if (!params.has("augmentations")) return;
  for (const char* key : {"augmentations", "augmentations/both", "augmentations/input",
                          "augmentations/target"}) {  // NectarGAN's configs have an empty target
    check_is_map(params, key);
  }
  joint_.emplace(params.at("augmentations/both"), scale_);
  input_.emplace(params.at("augmentations/input"));
}

void PairedImages::read_scaled(const Config& params, std::unique_ptr<Dataset> dataset) {
  scale_ = params.get_at_least("scale", 1, 2);
  multiple_ = params.get_at_least("multiple", 1, 1);
  flips_ = params.get("flip", false);
  rotates_ = params.get("rotate", false);
  if (crop_ % scale_ != 0) {
    throw params.error("crop",
                       fmt::format("expected a multiple of scale, {}, found {}", scale_, crop_));
  }
  source_ = make_scaled_pairs(params, scale_, std::move(dataset));
}

std::vector<Parameter> parameters_of_pairs() {
  std::vector<Parameter> parameters = {
      {"folder", "null", "of files with input and target side by side", true},
      {"input", "null", "folder of the inputs, with those of", true},
      {"target", "null", "the targets under the same names", true},
      {"mask", "null", "folder of PNG files of class numbers, which are the targets", true},
      {"dataset", "null", "another dataset, with both, or with large images"},
      {"direction", "AtoB", "or BtoA: input and target change places"},
      {"load_size", "null", "of input and target: resized to this side; null: as stored"},
      {"hq", "null", "folder of large images, for super-resolution", true},
      {"lq", "null", "folder of the small ones; null: made by bicubic reduction", true},
      {"key", "image", "of the large images in the examples of dataset"},
      {"scale", "2", "how many times larger hq is"},
      {"multiple", "1", "the sides of lq are cut to a multiple, at the lower and right border"},
      {"flip", "false", "half of the pairs hq, lq are mirrored"},
      {"rotate", "false", "half of the pairs hq, lq are turned by a quarter"},
      {"crop", "null", "pixels of a square part of the (large) image; null: the whole"},
      {"random", "true", "the part is taken from anywhere; false: in the middle"},
      {"channels", "null", "1 (grey), 3 (colour) or 4 (with alpha); null: as stored"},
      exif_parameter()};
  for (const auto& more : {JointAugmentations::parameters(), InputAugmentations::parameters()}) {
    parameters.insert(parameters.end(), more.begin(), more.end());
  }
  return parameters;
}

STEPOP_REGISTER_DATASET(PairedImages,
                        {"Pairs of images: input and target or mask, or large and small ones.",
                         parameters_of_pairs()});

}  // namespace
}  // namespace stepop
