// Injectors over images [B, C, H, W].
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

const at::Tensor& checked_image(const at::Tensor& image) {
  if (image.dim() == 4) return image;
  throw Error(fmt::format("expected images [B, C, H, W], found {}", describe_tensor(image)));
}

const at::Tensor& image_at(const StepState& state, Slot slot) {
  return checked_image(state.tensor(slot));
}

/// The mean of the channels, three times.
class Grey : public UnaryInjector {
 public:
  Grey(const Config& params, Ports& ports) : UnaryInjector(params, ports) {}
  at::Tensor compute(const at::Tensor& x) override {
    return checked_image(x).mean(1, /*keepdim=*/true).repeat({1, 3, 1, 1});
  }
};

/// Like torch.nn.functional.interpolate.
class Interpolate : public UnaryInjector {
 public:
  Interpolate(const Config& params, Ports& ports) : UnaryInjector(params, ports) {
    mode_ = params.get("mode", "nearest");
    if (mode_ != "nearest" && mode_ != "bilinear" && mode_ != "bicubic" && mode_ != "area") {
      throw params.error("mode", fmt::format("expected nearest, bilinear, bicubic or area, found "
                                             "\"{}\"",
                                             mode_));
    }
    is_smooth_ = params.get("antialias", false);
    if (is_smooth_ && mode_ != "bilinear" && mode_ != "bicubic") {
      throw params.error("antialias", "expected with the modes bilinear and bicubic alone");
    }
    const bool has_factor = params.has("scale_factor");
    if (has_factor == params.has("size")) {
      throw params.error("scale_factor", "expected either scale_factor or size");
    }
    if (has_factor) {
      factor_ = params.get<double>("scale_factor");
      if (!(factor_ > 0)) throw params.error("scale_factor", "expected more than 0");
    } else if (params.peek("size")->is_list()) {
      size_ = params.get<std::vector<int64_t>>("size");
      if (size_.size() != 2) throw params.error("size", "expected a number or [H, W]");
    } else {
      size_.assign(2, params.get_at_least("size", 1));
    }
  }

  at::Tensor compute(const at::Tensor& x) override {
    const at::Tensor& image = checked_image(x);
    std::vector<int64_t> size = size_;
    std::optional<double> factor;
    if (size.empty()) {
      factor = factor_;
      for (const int64_t i : {2, 3}) {
        size.push_back(static_cast<int64_t>(static_cast<double>(image.size(i)) * factor_));
      }
    }
    at::Tensor made;
    if (is_smooth_ && mode_ == "bilinear") {
      made = at::_upsample_bilinear2d_aa(image, size, /*align_corners=*/false, factor, factor);
    } else if (is_smooth_) {
      made = at::_upsample_bicubic2d_aa(image, size, /*align_corners=*/false, factor, factor);
    } else if (mode_ == "nearest") {
      made = at::upsample_nearest2d(image, size, factor, factor);
    } else if (mode_ == "bilinear") {
      made = at::upsample_bilinear2d(image, size, /*align_corners=*/false, factor, factor);
    } else if (mode_ == "bicubic") {
      made = at::upsample_bicubic2d(image, size, /*align_corners=*/false, factor, factor);
    } else {
      made = at::adaptive_avg_pool2d(image, size);
    }
    return made;
  }

 private:
  std::string mode_;
  bool is_smooth_ = false;
  double factor_ = 0;
  std::vector<int64_t> size_;  ///< Empty: `factor_` gives the size.
};

/// A corner of the image, and all four under their own names; in evaluations, the whole image each.
class ImagePatch : public Injector {
 public:
  ImagePatch(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")),
        out_(ports.writes(params, "out")),
        patch_(params.get_at_least("patch_size", 1)) {
    const auto name = params.get<std::string>("out");
    for (const char* corner : {"_top_left", "_top_right", "_bottom_left", "_bottom_right"}) {
      corners_.push_back(ports.writes_key(params, "out", name + corner));
    }
    if (params.has("resize")) resize_ = params.get_at_least("resize", 1);
  }

  void run(StepState& state, const Iteration& iteration) override {
    const at::Tensor& image = image_at(state, in_);
    if (!iteration.is_training) {
      const at::Tensor whole = resized(image);
      state.set(out_, whole);
      for (const Slot corner : corners_) state.set(corner, whole);
      return;
    }
    const int64_t height = image.size(2);
    const int64_t width = image.size(3);
    if (patch_ > height || patch_ > width) {
      throw Error(
          fmt::format("a patch of {} pixels is larger than {}", patch_, describe_tensor(image)));
    }
    for (size_t i = 0; i < corners_.size(); ++i) {
      const int64_t y = i < 2 ? 0 : height - patch_;
      const int64_t x = i % 2 == 0 ? 0 : width - patch_;
      at::Tensor patch = resized(image.narrow(2, y, patch_).narrow(3, x, patch_));
      if (i == 0) state.set(out_, patch.narrow(1, 0, std::min<int64_t>(patch.size(1), 3)));
      state.set(corners_[i], std::move(patch));
    }
  }

 private:
  at::Tensor resized(const at::Tensor& image) const {
    return resize_ ? at::upsample_nearest2d(image, {*resize_, *resize_}) : image;
  }

  Slot in_, out_;
  std::vector<Slot> corners_;
  int64_t patch_;
  std::optional<int64_t> resize_;
};

/// Windows of images, `margin` pixels from each side, each window moved independently by up to
/// `shift` pixels.
at::Tensor shifted_windows(const at::Tensor& images, int64_t margin, int64_t shift) {
  const int64_t height = images.size(2) - 2 * margin;
  const int64_t width = images.size(3) - 2 * margin;
  const at::Tensor shifts = at::randint(-shift, shift + 1, {images.size(0), 2}, at::kLong);
  const auto* by = shifts.const_data_ptr<int64_t>();
  std::vector<at::Tensor> windows;
  for (int64_t i = 0; i < images.size(0); ++i) {
    windows.push_back(
        images[i].narrow(1, margin + by[2 * i], height).narrow(2, margin + by[2 * i + 1], width));
  }
  return at::stack(windows);
}

/// Moves each image independently by up to `random_shift_max` pixels; border pixels are repeated.
class RandomShift : public UnaryInjector {
 public:
  RandomShift(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), shift_(params.get_at_least("random_shift_max", 1)) {}

  at::Tensor compute(const at::Tensor& x) override {
    const at::Tensor& image = checked_image(x);
    return shifted_windows(at::replication_pad2d(image, {shift_, shift_, shift_, shift_}), shift_,
                           shift_);
  }

 private:
  int64_t shift_;
};

/// Removes `margin` pixels at each side; the window moves by up to `random_shift_max` pixels for
/// each image independently.
class MarginRemoval : public UnaryInjector {
 public:
  MarginRemoval(const Config& params, Ports& ports)
      : UnaryInjector(params, ports),
        margin_(params.get_at_least("margin", 0)),
        shift_(params.get_at_least("random_shift_max", 0, 0)) {
    if (shift_ > margin_) {
      throw params.error("random_shift_max",
                         fmt::format("expected margin, {}, at most, found {}", margin_, shift_));
    }
  }

  at::Tensor compute(const at::Tensor& x) override {
    const at::Tensor& image = checked_image(x);
    const int64_t height = image.size(2) - 2 * margin_;
    const int64_t width = image.size(3) - 2 * margin_;
    if (height < 1 || width < 1) {
      throw Error(fmt::format("nothing is left of {} without margins of {}", describe_tensor(image),
                              margin_));
    }
    if (shift_ == 0) {
      return image.narrow(2, margin_, height).narrow(3, margin_, width);
    }
    return shifted_windows(image, margin_, shift_);
  }

 private:
  int64_t margin_;
  int64_t shift_;
};

/// `produce_diff`: the low-resolution image and the difference of the other image as channels, and
/// the difference alone; `recombine`: the sum of `lq` and `hq`, which then is the difference.
class SrDiffs : public Injector {
 public:
  SrDiffs(const Config& params, Ports& ports) {
    const auto mode = params.get<std::string>("mode");
    if (mode != "produce_diff" && mode != "recombine") {
      throw params.error("mode",
                         fmt::format("expected produce_diff or recombine, found \"{}\"", mode));
    }
    produces_ = mode == "produce_diff";
    lq_ = ports.reads(params, "lq");
    hq_ = ports.reads(params, "hq");
    out_ = ports.writes(params, "out");
    if (!produces_) return;
    includes_ = params.get("include_combined", false);
    diff_ = ports.writes(params, "diff");
  }

  void run(StepState& state, const Iteration&) override {
    const at::Tensor& low = image_at(state, lq_);
    const at::Tensor& high = image_at(state, hq_);
    if (!produces_) {
      state.set(out_, low + high);
      return;
    }
    std::vector<at::Tensor> channels = {low, high - low};
    state.set(diff_, channels.back());
    if (includes_) channels.push_back(high);
    state.set(out_, at::cat(channels, 1));
  }

 private:
  Slot lq_, hq_, out_, diff_;
  bool produces_;
  bool includes_ = false;
};

STEPOP_REGISTER_INJECTOR(grey, Grey,
                         {"The mean of the channels, three times.",
                          {{"in", "", ""}, {"out", "", ""}}});
STEPOP_REGISTER_INJECTOR(interpolate, Interpolate,
                         {"The image in another size.",
                          {{"in", "", ""},
                           {"out", "", ""},
                           {"scale_factor", "none", "how many times larger; or size"},
                           {"size", "none", "a number of pixels, or [H, W]"},
                           {"mode", "nearest", "nearest, bilinear, bicubic or area"},
                           {"antialias", "false",
                            "as Pillow's and MATLAB's imresize, of bilinear and bicubic"}}});
STEPOP_REGISTER_INJECTOR(image_patch, ImagePatch,
                         {"The corners of an image.",
                          {{"in", "", ""},
                           {"out", "", "and out_top_left, ..., out_bottom_right"},
                           {"patch_size", "", "pixels"},
                           {"resize", "none", "pixels of what comes out"}}});
STEPOP_REGISTER_INJECTOR(
    random_shift, RandomShift,
    {"Each image moved at random, with its border repeated.",
     {{"in", "", ""}, {"out", "", ""}, {"random_shift_max", "", "by how many pixels at most"}}});
STEPOP_REGISTER_INJECTOR(margin_removal, MarginRemoval,
                         {"The image without its margins.",
                          {{"in", "", ""},
                           {"out", "", ""},
                           {"margin", "", "pixels"},
                           {"random_shift_max", "0", "by how much the window moves"}}});
STEPOP_REGISTER_INJECTOR(sr_diffs, SrDiffs,
                         {"What a high-resolution image adds to a low-resolution one.",
                          {{"mode", "", "produce_diff or recombine"},
                           {"lq", "", ""},
                           {"hq", "", "of recombine: the difference"},
                           {"diff", "", "of produce_diff: where the difference goes"},
                           {"out", "", ""},
                           {"include_combined", "false", "hq as further channels"}}});

}  // namespace
}  // namespace stepop::extensible
