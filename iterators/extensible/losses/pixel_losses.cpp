// Losses that compare values, and losses of classes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/square.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/losses/criterion.h"
#include "iterators/extensible/step/loss.h"
#include "iterators/losses/cross_entropy.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

class Pix : public Loss {
 public:
  Pix(const Config& params, Ports& ports)
      : criterion_(params),
        real_(ports.reads(params, "real")),
        fake_(ports.reads(params, "fake")),
        scale_(params.get("real_scale", 1.0)),
        offset_(params.get("real_offset", 0.0)),
        reports_(params.get("report_metrics", false)) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    at::Tensor real = state.tensor(real_);
    if (scale_ != 1) real = real * scale_;
    if (offset_ != 0) real = real + offset_;
    const at::Tensor& fake = state.tensor(fake_);
    if (reports_) {
      metrics.set("real_pix_mean", real.detach().mean());
      metrics.set("fake_pix_mean", fake.detach().mean());
      metrics.set("real_pix_std", real.detach().std());
      metrics.set("fake_pix_std", fake.detach().std());
    }
    return criterion_(fake, real);
  }

 private:
  Criterion criterion_;
  Slot real_, fake_;
  double scale_;
  double offset_;
  bool reports_;
};

/// l2, with more weight where the real image has details that downsampling loses.
class SrPix : public Loss {
 public:
  SrPix(const Config& params, Ports& ports)
      : real_(ports.reads(params, "real")),
        fake_(ports.reads(params, "fake")),
        scale_(params.get_at_least("scale", 1)),
        base_(params.get("base_loss", 0.2)),
        exponent_(params.get("exp", 2.0)) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    const at::Tensor& real = state.tensor(real_);
    const at::Tensor& fake = state.tensor(fake_);
    if (real.dim() != 4 || real.sizes() != fake.sizes() || real.size(2) % scale_ != 0 ||
        real.size(3) % scale_ != 0) {
      throw Error(
          fmt::format("expected images of one size that is a multiple of {}, found {} and "
                      "{}",
                      scale_, describe_tensor(real), describe_tensor(fake)));
    }
    const at::Tensor l2 = at::square(fake - real);
    const at::Tensor mean = l2.mean();
    metrics.set("l2_loss", mean.detach());
    const at::Tensor small =
        at::adaptive_avg_pool2d(real, {real.size(2) / scale_, real.size(3) / scale_});
    const at::Tensor smooth = at::upsample_nearest2d(small, {real.size(2), real.size(3)});
    at::Tensor weights = at::pow(at::abs(real - smooth) + base_, exponent_);
    weights = weights / weights.mean();
    const at::Tensor weighted = l2 * weights;
    return (weighted * mean / weighted.mean()).mean();
  }

 private:
  Slot real_, fake_;
  int64_t scale_;
  double base_;
  double exponent_;
};

/// The mean of a key; with `annealing_termination_step` its weight rises from 0 to 1.
class DirectLoss : public Loss {
 public:
  DirectLoss(const Config& params, Ports& ports)
      : key_(ports.reads(params, "key")),
        is_inverted_(params.get("inverted", false)),
        rise_(params.get_at_least("annealing_termination_step", 0, 0)) {}

  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars&) override {
    const at::Tensor mean = state.tensor(key_).mean();
    double factor = is_inverted_ ? -1 : 1;
    if (rise_ > 0) {
      factor *= static_cast<double>(std::min(iteration.number, rise_)) / static_cast<double>(rise_);
    }
    return factor == 1 ? mean : mean * factor;
  }

 private:
  Slot key_;
  bool is_inverted_;
  int64_t rise_;
};

/// Cross entropy. `ce`: the last dimension of the logits, after `swap_channels`, is the classes.
class CrossEntropy : public Loss {
 public:
  CrossEntropy(const Config& params, Ports& ports)
      : logits_(ports.reads(params, "logits")),
        labels_(ports.reads(params, "labels")),
        mask_(ports.reads_optional(params, "mask")),
        subtype_(params.get("subtype", "ce")),
        rescales_(params.get("rescale", false)),
        swaps_(params.get("swap_channels", false)) {
    if (subtype_ != "ce" && subtype_ != "soft_ce" && subtype_ != "bce") {
      throw params.error("subtype",
                         fmt::format("expected ce, soft_ce or bce, found \"{}\"", subtype_));
    }
  }

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    at::Tensor logits = state.tensor(logits_);
    at::Tensor labels = state.tensor(labels_);
    if (rescales_) labels = resized(labels.to(at::kFloat), logits).to(labels.scalar_type());
    if (mask_) {
      const at::Tensor& mask = state.tensor(mask_);
      logits = logits * (rescales_ ? resized(mask, logits) : mask);
    }
    if (swaps_) logits = logits.movedim(1, -1).contiguous();
    if (subtype_ == "soft_ce") return at::cross_entropy_loss(logits, at::softmax(labels, 1));
    if (subtype_ == "bce") {
      return at::binary_cross_entropy_with_logits(logits.reshape({-1, 1}),
                                                  labels.reshape({-1, 1}).to(logits.scalar_type()));
    }
    weighted_ = stepop::cross_entropy(logits.reshape({-1, logits.size(-1)}),
                                      labels.reshape({-1}).to(at::kLong));
    return weighted_->value();
  }

  std::optional<WeightedMean> weighted() const override { return weighted_; }

 private:
  static at::Tensor resized(const at::Tensor& x, const at::Tensor& like) {
    return at::upsample_nearest2d(x, {like.size(2), like.size(3)});
  }

  Slot logits_, labels_, mask_;
  std::string subtype_;
  bool rescales_;
  bool swaps_;
  std::optional<WeightedMean> weighted_;
};

/// The Kullback-Leibler divergence of a student's classes from a teacher's, from logits [B, C, L];
/// summed over C and L, the mean over the batch.
class Distillation : public Loss {
 public:
  Distillation(const Config& params, Ports& ports)
      : teacher_(ports.reads(params, "teacher")),
        student_(ports.reads(params, "student")),
        temperature_(params.get("temperature", 1.0)) {
    if (!(temperature_ > 0)) throw params.error("temperature", "expected more than 0");
  }

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    const at::Tensor target = at::softmax(state.tensor(teacher_) / temperature_, 1);
    const at::Tensor made = at::log_softmax(state.tensor(student_) / temperature_, 1);
    return at::kl_div(made, target, at::Reduction::Sum) / target.size(0);
  }

 private:
  Slot teacher_, student_;
  double temperature_;
};

STEPOP_REGISTER_LOSS(pix, Pix,
                     {"How far two tensors are apart.",
                      {{"criterion", "", "l1, l2, cosine or a loss function"},
                       {"real", "", ""},
                       {"fake", "", ""},
                       {"real_scale", "1", "real is multiplied by it"},
                       {"real_offset", "0", "and this is added"},
                       {"report_metrics", "false", "means and deviations are logged, too"}}});
STEPOP_REGISTER_LOSS(sr_pix, SrPix,
                     {"l2 that counts details more.",
                      {{"real", "", ""},
                       {"fake", "", ""},
                       {"scale", "", "details are what is lost at a size so much smaller"},
                       {"base_loss", "0.2", "the weight where there are none"},
                       {"exp", "2", "of the weights"}}});
STEPOP_REGISTER_LOSS(direct, DirectLoss,
                     {"The mean of a key.",
                      {{"key", "", ""},
                       {"inverted", "false", "times -1"},
                       {"annealing_termination_step", "0", "until then its weight rises from 0"}}});
STEPOP_REGISTER_LOSS(
    cross_entropy, CrossEntropy,
    {"Of logits and classes.",
     {{"logits", "", ""},
      {"labels", "", ""},
      {"subtype", "ce", "ce: classes in the last dimension; soft_ce: labels are logits; bce"},
      {"mask", "none", "what the logits are multiplied by"},
      {"rescale", "false", "labels and mask get the size of the logits"},
      {"swap_channels", "false", "the logits have their classes in dimension 1"}}});
STEPOP_REGISTER_LOSS(crossentropy, CrossEntropy, {"The same as cross_entropy.", {}});
STEPOP_REGISTER_LOSS(
    distillation, Distillation,
    {"How far a student's classes are from a teacher's.",
     {{"teacher", "", "logits [B, C, L]"}, {"student", "", "the same"}, {"temperature", "1", ""}}});

}  // namespace
}  // namespace stepop::extensible
