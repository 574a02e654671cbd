// PSNR and SSIM, as papers on super-resolution report them.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "iterators/extensible/evaluators/picture_range.h"
#include "iterators/extensible/step/evaluator.h"
#include "iterators/metrics/similarity.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

/// A number for each picture, compared with the true picture in [0, 255].
class Similarity : public Evaluator {
 public:
  using Metric = at::Tensor (*)(const at::Tensor&, const at::Tensor&, double peak);

  struct Params {
    Port real;
    Port fake;
    std::string channels = "rgb";
    PictureRange range;
    int64_t crop_border = 0;
    bool round = true;

    void declare(Parameters& p) {
      p.require("real", real, "the true pictures");
      p.require("fake", fake, "those that are compared with them");
      p.add("channels", channels, "rgb: all channels as they are; y: their luma, of BT.601",
            one_of({"rgb", "y"}));
      p.add("range", range, "the values of black and white");
      p.add("crop_border", crop_border, "pixels at each side that do not count", at_least(0));
      p.add("round", round, "clamped and rounded to 8 bits first, as in a file");
    }
  };

  Similarity(const Params& params, Ports& ports, Metric metric)
      : metric_(metric),
        real_(ports.reads(params.real)),
        fake_(ports.reads(params.fake)),
        range_(params.range),
        border_(params.crop_border),
        rounds_(params.round),
        is_luma_(params.channels == "y") {}

  void evaluate(const StepState& state, const Iteration&, const std::string& name,
                EvalOutputs& made) override {
    const at::Tensor& real = state.tensor(real_);
    const at::Tensor& fake = state.tensor(fake_);
    if (real.sizes() != fake.sizes()) {
      throw Error(fmt::format("real and fake differ in shape: {} and {}", describe_tensor(real),
                              describe_tensor(fake)));
    }
    range_.check(real);
    made.labels.set(name, metric_(prepared(real), prepared(fake), 255));
  }

 private:
  at::Tensor prepared(const at::Tensor& pictures) const {
    at::Tensor x = range_.to_unit(pictures).mul(255);
    if (rounds_) x = x.clamp(0, 255).round();
    const int64_t height = x.size(2) - 2 * border_;
    const int64_t width = x.size(3) - 2 * border_;
    if (height < 1 || width < 1) {
      throw Error(fmt::format("nothing is left of {} without a crop_border of {}",
                              describe_tensor(pictures), border_));
    }
    x = x.narrow(2, border_, height).narrow(3, border_, width);
    return is_luma_ ? metrics::luma(x) : x;
  }

  Metric metric_;
  Slot real_, fake_;
  PictureRange range_;
  int64_t border_;
  bool rounds_;
  bool is_luma_;
};

class Psnr : public Similarity {
 public:
  Psnr(const Params& params, Ports& ports) : Similarity(params, ports, metrics::psnr) {}
};

class Ssim : public Similarity {
 public:
  Ssim(const Params& params, Ports& ports) : Similarity(params, ports, metrics::ssim) {}
};

STEPOP_REGISTER_EVALUATOR(psnr, Psnr, {"PSNR in dB of each picture, and its mean."});
STEPOP_REGISTER_EVALUATOR(ssim, Ssim,
                          {"SSIM of each picture, and its mean: a Gaussian window of 11 x 11."});

}  // namespace
}  // namespace stepop::extensible
