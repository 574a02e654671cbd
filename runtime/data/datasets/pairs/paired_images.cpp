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
/// Images are resized and reduced by bicubic interpolation with antialiasing, like MATLAB's
/// imresize and Pillow's. With masks there are `input` and `mask`, int64 [H, W] as in read_mask,
/// whose names are those of the images up to the ending; images without a mask are left out. Rows
/// and columns beyond a multiple of `scale` are cut off at the lower and right border.
class PairedImages : public Dataset {
 public:
  struct Params {
    PairOptions source;
    int64_t multiple = 1;
    bool flip = false;
    bool rotate = false;
    std::optional<int64_t> crop;
    bool random = true;
    std::optional<JointAugmentations> joint;
    std::optional<InputAugmentations> input;
    bool is_scaled = true;

    void declare(Parameters& p);
    void declare_translation(Parameters& p);
    void declare_scaled(Parameters& p);
  };

  PairedImages(Params params, const Config& config);

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

  bool is_scaled_;  ///< The pairs are hq and lq; otherwise input and target, which have the same
                    ///< size.
  std::string large_key_ = "hq";
  std::string small_key_ = "lq";
  std::unique_ptr<PairSource> source_;
  int64_t scale_;
  int64_t multiple_;  ///< That of the small image's sides.
  int64_t crop_;      ///< 0 takes the whole image.
  bool is_random_;
  bool flips_;
  bool rotates_;
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

void PairedImages::Params::declare(Parameters& p) {
  const Config* config = p.describe({.name = "folder",
                                     .default_value = "none",
                                     .about = "of files with input and target side by side",
                                     .is_path = true,
                                     .type = {.kind = "path"}});
  const auto has = [&](const char* name) { return config != nullptr && config->has(name); };
  if (config != nullptr) check_sources(*config);
  if (has("folder")) source.folder = {get_folder(*config, "folder")};
  const auto add_folder = [&](const char* name, auto& value, const char* about, bool is_needed) {
    is_needed ? p.require(name, value, about) : p.add(name, value, about);
  };
  add_folder("input", source.input, "folder of the inputs, with those of",
             has("target") || has("mask"));
  add_folder("target", source.target, "the targets under the same names",
             has("input") && !has("mask"));
  p.add("mask", source.mask, "folder of PNG files of class numbers, which are the targets");
  if (const Config* found = p.describe_optional(
          "dataset", "component dataset", "another dataset, with both, or with large images")) {
    source.dataset = datasets().build(*found, "dataset");
  }
  add_folder("hq", source.hq, "folder of large images, for super-resolution", has("lq"));
  p.add("lq", source.lq, "folder of the small ones; null: made by bicubic reduction");
  is_scaled = source.hq || (source.dataset && (has("key") || !has_pairs(*source.dataset)));
  if (config == nullptr || !is_scaled) declare_translation(p);
  if (config == nullptr || is_scaled) declare_scaled(p);
  p.add("crop", crop, "pixels of a square part of the (large) image; null: the whole", at_least(0));
  p.add("random", random, "the part is taken from anywhere; false: in the middle");
  if (!source.dataset) source.images.declare(p);
  if (has("mask")) check_masks(*config);
  for (const auto& rows : {JointAugmentations::parameters(), InputAugmentations::parameters()}) {
    for (const Parameter& row : rows) p.describe(row);
  }
  if (!has("augmentations")) return;
  for (const char* key : {"augmentations", "augmentations/both", "augmentations/input",
                          "augmentations/target"}) {  // NectarGAN's configs have an empty target
    check_is_map(*config, key);
  }
  joint.emplace(config->at("augmentations/both"), is_scaled ? source.scale : 1);
  input.emplace(config->at("augmentations/input"));
}

void PairedImages::Params::declare_translation(Parameters& p) {
  p.add("direction", source.direction, "or BtoA: input and target change places",
        one_of({"AtoB", "BtoA"}));
  p.add("load_size", source.load_size, "of input and target: resized to this side; null: as stored",
        at_least(1).at_most(8192));
}

void PairedImages::Params::declare_scaled(Parameters& p) {
  p.add("key", source.key, "of the large images in the examples of dataset");
  p.add("scale", source.scale, "how many times larger hq is", at_least(1));
  p.add("multiple", multiple,
        "the sides of lq are cut to a multiple, at the lower and right border", at_least(1));
  p.add("flip", flip, "half of the pairs hq, lq are mirrored");
  p.add("rotate", rotate, "half of the pairs hq, lq are turned by a quarter");
}

PairedImages::PairedImages(Params params, const Config& config)
    : is_scaled_(params.is_scaled),
      scale_(is_scaled_ ? params.source.scale : 1),
      multiple_(params.multiple),
      crop_(params.crop.value_or(0)),
      is_random_(params.random),
      flips_(params.flip),
      rotates_(params.rotate),
      joint_(std::move(params.joint)),
      input_(std::move(params.input)) {
  if (is_scaled_) {
    if (crop_ % scale_ != 0) {
      throw config.error("crop",
                         fmt::format("expected a multiple of scale, {}, found {}", scale_, crop_));
    }
    source_ = make_scaled_pairs(std::move(params.source), config);
  } else {
    large_key_ = "input";
    small_key_ = params.source.mask ? "mask" : "target";
    source_ = make_translation_pairs(std::move(params.source), config);
  }
}

STEPOP_REGISTER_DATASET(PairedImages,
                        {"Pairs of images: input and target or mask, or large and small ones."});

}  // namespace
}  // namespace stepop
