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
  struct Params : RealFake {
    Criterion criterion;
    double real_scale = 1;
    double real_offset = 0;
    bool report_metrics = false;

    void declare(Parameters& p) {
      require_criterion(p, criterion);
      RealFake::declare(p);
      p.add("real_scale", real_scale, "real is multiplied by it");
      p.add("real_offset", real_offset, "and this is added");
      p.add("report_metrics", report_metrics, "means and deviations are logged, too");
    }
  };

  Pix(const Params& params, Ports& ports)
      : p_(params), real_(ports.reads(params.real)), fake_(ports.reads(params.fake)) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    at::Tensor real = state.tensor(real_);
    if (p_.real_scale != 1) real = real * p_.real_scale;
    if (p_.real_offset != 0) real = real + p_.real_offset;
    const at::Tensor& fake = state.tensor(fake_);
    if (p_.report_metrics) {
      metrics.set("real_pix_mean", real.detach().mean());
      metrics.set("fake_pix_mean", fake.detach().mean());
      metrics.set("real_pix_std", real.detach().std());
      metrics.set("fake_pix_std", fake.detach().std());
    }
    return p_.criterion(fake, real);
  }

 private:
  Params p_;
  Slot real_, fake_;
};

/// l2, with more weight where the real image has details that downsampling loses.
class SrPix : public Loss {
 public:
  struct Params : RealFake {
    int64_t scale = 1;
    double base = 0.2;
    double exponent = 2;

    void declare(Parameters& p) {
      RealFake::declare(p);
      p.require("scale", scale, "details are what is lost at a size so much smaller", at_least(1));
      p.add("base_loss", base, "the weight where there are none");
      p.add("exp", exponent, "of the weights");
    }
  };

  SrPix(const Params& params, Ports& ports)
      : p_(params), real_(ports.reads(params.real)), fake_(ports.reads(params.fake)) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    const at::Tensor& real = state.tensor(real_);
    const at::Tensor& fake = state.tensor(fake_);
    if (real.dim() != 4 || real.sizes() != fake.sizes() || real.size(2) % p_.scale != 0 ||
        real.size(3) % p_.scale != 0) {
      throw Error(
          fmt::format("expected images of one size that is a multiple of {}, found {} and "
                      "{}",
                      p_.scale, describe_tensor(real), describe_tensor(fake)));
    }
    const at::Tensor l2 = at::square(fake - real);
    const at::Tensor mean = l2.mean();
    metrics.set("l2_loss", mean.detach());
    const at::Tensor small =
        at::adaptive_avg_pool2d(real, {real.size(2) / p_.scale, real.size(3) / p_.scale});
    const at::Tensor smooth = at::upsample_nearest2d(small, {real.size(2), real.size(3)});
    at::Tensor weights = at::pow(at::abs(real - smooth) + p_.base, p_.exponent);
    weights = weights / weights.mean();
    const at::Tensor weighted = l2 * weights;
    return (weighted * mean / weighted.mean()).mean();
  }

 private:
  Params p_;
  Slot real_, fake_;
};

/// The mean of a key; with `annealing_termination_step` its weight rises from 0 to 1.
class DirectLoss : public Loss {
 public:
  struct Params {
    Port key;
    bool inverted = false;
    int64_t rise = 0;

    void declare(Parameters& p) {
      p.require("key", key, "");
      p.add("inverted", inverted, "times -1");
      p.add("annealing_termination_step", rise, "until then its weight rises from 0", at_least(0));
    }
  };

  DirectLoss(const Params& params, Ports& ports) : p_(params), key_(ports.reads(params.key)) {}

  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars&) override {
    const at::Tensor mean = state.tensor(key_).mean();
    double factor = p_.inverted ? -1 : 1;
    if (p_.rise > 0) {
      factor *=
          static_cast<double>(std::min(iteration.number, p_.rise)) / static_cast<double>(p_.rise);
    }
    return factor == 1 ? mean : mean * factor;
  }

 private:
  Params p_;
  Slot key_;
};

/// Cross entropy. `ce`: the last dimension of the logits, after `swap_channels`, is the classes.
class CrossEntropy : public Loss {
 public:
  struct Params {
    Port logits;
    Port labels;
    Port mask;
    std::string subtype = "ce";
    bool rescale = false;
    bool swap_channels = false;

    void declare(Parameters& p) {
      p.require("logits", logits, "");
      p.require("labels", labels, "");
      p.add("subtype", subtype,
            "ce: classes in the last dimension; soft_ce: labels are logits; bce",
            one_of({"ce", "soft_ce", "bce"}));
      p.add("mask", mask, "what the logits are multiplied by");
      p.add("rescale", rescale, "labels and mask get the size of the logits");
      p.add("swap_channels", swap_channels, "the logits have their classes in dimension 1");
    }
  };

  CrossEntropy(const Params& params, Ports& ports)
      : p_(params),
        logits_(ports.reads(params.logits)),
        labels_(ports.reads(params.labels)),
        mask_(ports.reads(params.mask)) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    at::Tensor logits = state.tensor(logits_);
    at::Tensor labels = state.tensor(labels_);
    if (p_.rescale) labels = resized(labels.to(at::kFloat), logits).to(labels.scalar_type());
    if (mask_) {
      const at::Tensor& mask = state.tensor(mask_);
      logits = logits * (p_.rescale ? resized(mask, logits) : mask);
    }
    if (p_.swap_channels) logits = logits.movedim(1, -1).contiguous();
    if (p_.subtype == "soft_ce") return at::cross_entropy_loss(logits, at::softmax(labels, 1));
    if (p_.subtype == "bce") {
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

  Params p_;
  Slot logits_, labels_, mask_;
  std::optional<WeightedMean> weighted_;
};

/// The Kullback-Leibler divergence of a student's classes from a teacher's, from logits [B, C, L];
/// summed over C and L, the mean over the batch.
class Distillation : public Loss {
 public:
  struct Params {
    Port teacher;
    Port student;
    double temperature = 1;

    void declare(Parameters& p) {
      p.require("teacher", teacher, "logits [B, C, L]");
      p.require("student", student, "the same");
      p.add("temperature", temperature, "", above(0));
    }
  };

  Distillation(const Params& params, Ports& ports)
      : teacher_(ports.reads(params.teacher)),
        student_(ports.reads(params.student)),
        temperature_(params.temperature) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    const at::Tensor target = at::softmax(state.tensor(teacher_) / temperature_, 1);
    const at::Tensor made = at::log_softmax(state.tensor(student_) / temperature_, 1);
    return at::kl_div(made, target, at::Reduction::Sum) / target.size(0);
  }

 private:
  Slot teacher_, student_;
  double temperature_;
};

STEPOP_REGISTER_LOSS(pix, Pix, {"How far two tensors are apart."});
STEPOP_REGISTER_LOSS(sr_pix, SrPix, {"l2 that counts details more."});
STEPOP_REGISTER_LOSS(direct, DirectLoss, {"The mean of a key."});
STEPOP_REGISTER_LOSS(cross_entropy, CrossEntropy, {"Of logits and classes."});
STEPOP_REGISTER_LOSS(crossentropy, CrossEntropy,
                     {"The same as cross_entropy.", {}, /*is_alias=*/true});
STEPOP_REGISTER_LOSS(distillation, Distillation,
                     {"How far a student's classes are from a teacher's."});

}  // namespace
}  // namespace stepop::extensible
