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

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/step/image_size.h"
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
  using Params = InOut;
  using UnaryInjector::UnaryInjector;
  at::Tensor compute(const at::Tensor& x) override {
    return checked_image(x).mean(1, /*keepdim=*/true).repeat({1, 3, 1, 1});
  }
};

/// Like torch.nn.functional.interpolate.
class Interpolate : public UnaryInjector {
 public:
  struct Params : InOut {
    std::optional<double> factor;
    std::vector<int64_t> size;  ///< Empty: `factor` gives the size.
    std::string mode = "nearest";
    bool antialias = false;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.add("scale_factor", factor, "how many times larger; or size", above(0));
      add_image_size(p, size, "a number of pixels, or [H, W]");
      p.add("mode", mode, "nearest, bilinear, bicubic or area",
            one_of({"nearest", "bilinear", "bicubic", "area"}));
      p.add("antialias", antialias, "as Pillow's and MATLAB's imresize, of bilinear and bicubic");
    }
  };

  Interpolate(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports), p_(params) {
    if (p_.antialias && p_.mode != "bilinear" && p_.mode != "bicubic") {
      throw config.error("antialias", "expected with the modes bilinear and bicubic alone");
    }
    if (p_.factor.has_value() != p_.size.empty()) {
      throw config.error("scale_factor", "expected either scale_factor or size");
    }
  }

  at::Tensor compute(const at::Tensor& x) override {
    const at::Tensor& image = checked_image(x);
    const std::optional<double>& factor = p_.factor;
    std::vector<int64_t> size = p_.size;
    for (int64_t i = 2; factor && i < 4; ++i) {
      size.push_back(static_cast<int64_t>(static_cast<double>(image.size(i)) * *factor));
    }
    if (p_.antialias && p_.mode == "bilinear") {
      return at::_upsample_bilinear2d_aa(image, size, /*align_corners=*/false, factor, factor);
    }
    if (p_.antialias) {
      return at::_upsample_bicubic2d_aa(image, size, /*align_corners=*/false, factor, factor);
    }
    if (p_.mode == "nearest") return at::upsample_nearest2d(image, size, factor, factor);
    if (p_.mode == "bilinear") {
      return at::upsample_bilinear2d(image, size, /*align_corners=*/false, factor, factor);
    }
    if (p_.mode == "bicubic") {
      return at::upsample_bicubic2d(image, size, /*align_corners=*/false, factor, factor);
    }
    return at::adaptive_avg_pool2d(image, size);
  }

 private:
  Params p_;
};

/// A corner of the image, and all four under their own names; in evaluations, the whole image each.
class ImagePatch : public Injector {
 public:
  struct Params : InOut {
    int64_t patch_size = 1;
    std::optional<int64_t> resize;

    void declare(Parameters& p) {
      InOut::declare(p, "", "and out_top_left, ..., out_bottom_right");
      p.require("patch_size", patch_size, "pixels", at_least(1));
      p.add("resize", resize, "pixels of what comes out", at_least(1));
    }
  };

  ImagePatch(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)),
        out_(ports.writes(params.out)),
        patch_(params.patch_size),
        resize_(params.resize) {
    for (const char* corner : {"_top_left", "_top_right", "_bottom_left", "_bottom_right"}) {
      corners_.push_back(ports.writes(params.out.with_suffix(corner)));
    }
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
  struct Params : InOut {
    int64_t shift = 1;

    void declare(Parameters& p) {
      InOut::declare(p).require("random_shift_max", shift, "by how many pixels at most",
                                at_least(1));
    }
  };

  RandomShift(const Params& params, Ports& ports)
      : UnaryInjector(params, ports), shift_(params.shift) {}

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
  struct Params : InOut {
    int64_t margin = 0;
    int64_t shift = 0;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.require("margin", margin, "pixels", at_least(0));
      p.add("random_shift_max", shift, "by how much the window moves", at_least(0));
    }
  };

  MarginRemoval(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports), margin_(params.margin), shift_(params.shift) {
    if (shift_ > margin_) {
      throw config.error("random_shift_max",
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
  struct Params {
    std::string mode = "produce_diff";
    Port lq, hq, diff, out;
    bool include_combined = false;

    void declare(Parameters& p) {
      p.require("mode", mode, "produce_diff or recombine", one_of({"produce_diff", "recombine"}));
      p.require("lq", lq, "");
      p.require("hq", hq, "of recombine: the difference");
      p.require("out", out, "");
      if (mode == "recombine") return;
      p.require("diff", diff, "of produce_diff: where the difference goes");
      p.add("include_combined", include_combined, "hq as further channels");
    }
  };

  SrDiffs(const Params& params, Ports& ports)
      : lq_(ports.reads(params.lq)),
        hq_(ports.reads(params.hq)),
        out_(ports.writes(params.out)),
        diff_(ports.writes(params.diff)),
        produces_(params.mode == "produce_diff"),
        includes_(params.include_combined) {}

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
  bool includes_;
};

STEPOP_REGISTER_INJECTOR(grey, Grey, {"The mean of the channels, three times."});
STEPOP_REGISTER_INJECTOR(interpolate, Interpolate, {"The image in another size."});
STEPOP_REGISTER_INJECTOR(image_patch, ImagePatch, {"The corners of an image."});
STEPOP_REGISTER_INJECTOR(random_shift, RandomShift,
                         {"Each image moved at random, with its border repeated."});
STEPOP_REGISTER_INJECTOR(margin_removal, MarginRemoval, {"The image without its margins."});
STEPOP_REGISTER_INJECTOR(sr_diffs, SrDiffs,
                         {"What a high-resolution image adds to a low-resolution one."});

}  // namespace
}  // namespace stepop::extensible
