// Schedules with the names and parameters of torch.optim.lr_scheduler, and `from`, the rate of the
// optimizer there, for who knows those names: aliases, which lists do not propose.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/length_parameter.h"

namespace stepop {
namespace {

/// A function of the step, the member `at` of its parameters.
template <class Form>
class ClosedForm : public Schedule {
 public:
  using Params = Form;
  explicit ClosedForm(const Params& params) : form_(params) {}
  double at(int64_t step) const override { return form_.at(static_cast<double>(step)); }

 private:
  Params form_;
};

double half_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

struct OfRate {
  double from = 0;

  void declare_from(Parameters& p) {
    p.require("from", from, "the number at the beginning, PyTorch's rate of the optimizer");
  }
};

struct StepLR : OfRate {
  int64_t step_size = 1;
  double gamma = 0.1;

  void declare(Parameters& p) {
    declare_from(p);
    require_length(p, "step_size", step_size, 1, "steps between two drops: 3000, 30e");
    p.add("gamma", gamma, "what it is multiplied by");
  }
  double at(double t) const {
    return from * std::pow(gamma, std::floor(t / static_cast<double>(step_size)));
  }
};
STEPOP_REGISTER_SCHEDULE(StepLR, ClosedForm<StepLR>,
                         {"Multiplied by a factor now and then, as torch.optim's StepLR.",
                          {},
                          /*is_alias=*/true});

struct MultiStepLR : OfRate {
  std::vector<int64_t> milestones;
  double gamma = 0.1;

  void declare(Parameters& p) {
    declare_from(p);
    require_lengths(p, "milestones", milestones,
                    "the list of these steps: [3000, 5000], [30e, 50e]");
    std::ranges::sort(milestones);
    p.add("gamma", gamma, "what it is multiplied by");
  }
  double at(double t) const {
    const auto passed = std::ranges::upper_bound(milestones, static_cast<int64_t>(t));
    return from * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
  }
};
STEPOP_REGISTER_SCHEDULE(MultiStepLR, ClosedForm<MultiStepLR>,
                         {"Multiplied by a factor at some steps, as torch.optim's MultiStepLR.",
                          {},
                          /*is_alias=*/true});

struct ConstantLR : OfRate {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;

  void declare(Parameters& p) {
    declare_from(p);
    p.add("factor", factor, "the part");
    add_length(p, "total_iters", total_iters, 1, "steps with the part: 500, 2e");
  }
  double at(double t) const { return t < static_cast<double>(total_iters) ? from * factor : from; }
};
STEPOP_REGISTER_SCHEDULE(ConstantLR, ClosedForm<ConstantLR>,
                         {"A part of a number, then the number, as torch.optim's ConstantLR.",
                          {},
                          /*is_alias=*/true});

struct LinearLR : OfRate {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_iters = 5;

  void declare(Parameters& p) {
    declare_from(p);
    p.add("start_factor", start_factor, "the part at the beginning");
    p.add("end_factor", end_factor, "the part from the end of the line on");
    add_length(p, "total_iters", total_iters, 1, "steps of the line: 500, 2e");
  }
  double at(double t) const {
    const double part = std::min(t / static_cast<double>(total_iters), 1.0);
    return from * (start_factor + (end_factor - start_factor) * part);
  }
};
STEPOP_REGISTER_SCHEDULE(LinearLR, ClosedForm<LinearLR>,
                         {"A line from one part of a number to another, as torch.optim's "
                          "LinearLR.",
                          {},
                          /*is_alias=*/true});

struct ExponentialLR : OfRate {
  double gamma = 1;
  double each = 1;  ///< The steps of one factor.

  void declare(Parameters& p) {
    declare_from(p);
    p.require("gamma", gamma, "the factor");
    each = static_cast<double>(CountsEpochs::steps());
  }
  double at(double t) const { return from * std::pow(gamma, t / each); }
};
STEPOP_REGISTER_SCHEDULE(ExponentialLR, ClosedForm<ExponentialLR>,
                         {"Multiplied by a factor in every step, as torch.optim's ExponentialLR.",
                          {},
                          /*is_alias=*/true});

struct PolynomialLR : OfRate {
  double power = 1;
  int64_t total_iters = 5;

  void declare(Parameters& p) {
    declare_from(p);
    p.add("power", power, "the power");
    add_length(p, "total_iters", total_iters, 1, "steps until it is 0: 5000, 20e, end");
  }
  double at(double t) const {
    return from * std::pow(1 - std::min(t / static_cast<double>(total_iters), 1.0), power);
  }
};
STEPOP_REGISTER_SCHEDULE(PolynomialLR, ClosedForm<PolynomialLR>,
                         {"A power of what is left of the steps, as torch.optim's PolynomialLR.",
                          {},
                          /*is_alias=*/true});

struct CosineAnnealingLR : OfRate {
  int64_t T_max = 1;
  double eta_min = 0;

  void declare(Parameters& p) {
    declare_from(p);
    require_length(p, "T_max", T_max, 1, "steps until it is `eta_min`: 5000, 20e, end");
    p.add("eta_min", eta_min, "the smallest number");
  }
  double at(double t) const { return half_cosine(from, eta_min, t / static_cast<double>(T_max)); }
};
STEPOP_REGISTER_SCHEDULE(CosineAnnealingLR, ClosedForm<CosineAnnealingLR>,
                         {"A cosine, which rises again, as torch.optim's CosineAnnealingLR.",
                          {},
                          /*is_alias=*/true});

struct CosineAnnealingWarmRestarts : OfRate {
  int64_t T_0 = 1;
  int64_t T_mult = 1;
  double eta_min = 0;

  void declare(Parameters& p) {
    declare_from(p);
    require_length(p, "T_0", T_0, 1, "steps of the first fall: 1000, 5e");
    p.add("T_mult", T_mult, "how many times longer each fall is than the one before", at_least(1));
    p.add("eta_min", eta_min, "the number at the end of a fall");
  }
  double at(double t) const {
    auto period = static_cast<double>(T_0);
    if (T_mult == 1) t = std::fmod(t, period);
    for (; t >= period; period *= static_cast<double>(T_mult)) t -= period;
    return half_cosine(from, eta_min, t / period);
  }
};
STEPOP_REGISTER_SCHEDULE(CosineAnnealingWarmRestarts, ClosedForm<CosineAnnealingWarmRestarts>,
                         {"Half a cosine again and again, as torch.optim's "
                          "CosineAnnealingWarmRestarts.",
                          {},
                          /*is_alias=*/true});

struct CyclicLR {
  double base_lr = 0;
  double max_lr = 0;
  int64_t step_size_up = 2000;
  int64_t step_size_down = 0;  ///< 0: as of a rise.
  std::string mode = "triangular";
  double gamma = 1;
  double each = 1;  ///< The steps of one factor.

  void declare(Parameters& p) {
    p.require("base_lr", base_lr, "the lower number");
    p.require("max_lr", max_lr, "the higher number");
    add_length(p, "step_size_up", step_size_up, 1, "steps of a rise: 2000, 5e");
    add_optional_length(p, "step_size_down", step_size_down, 1,
                        "steps of a fall; none: as of a rise");
    p.add("mode", mode,
          "triangular, triangular2: half as high in each cycle, exp_range: lower in each step",
          one_of({"triangular", "triangular2", "exp_range"}));
    p.add("gamma", gamma, "with exp_range: the factor of the height in each step");
    each = static_cast<double>(CountsEpochs::steps());
  }
  double at(double t) const {
    const auto up = static_cast<double>(step_size_up);
    const double down = step_size_down > 0 ? static_cast<double>(step_size_down) : up;
    const double cycle = std::floor(t / (up + down));
    const double into = t - cycle * (up + down);
    const double part = into <= up ? into / up : 1 - (into - up) / down;
    const double height = mode == "triangular2" ? std::pow(0.5, cycle)
                          : mode == "exp_range" ? std::pow(gamma, t / each)
                                                : 1;
    return base_lr + (max_lr - base_lr) * part * height;
  }
};
STEPOP_REGISTER_SCHEDULE(
    CyclicLR, ClosedForm<CyclicLR>,
    {"Up and down between two numbers, as torch.optim's CyclicLR; the momentum stays.",
     {},
     /*is_alias=*/true});

}  // namespace
}  // namespace stepop
