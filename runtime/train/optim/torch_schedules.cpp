// Schedules with the names and parameters of torch.optim.lr_scheduler, and `from`, the rate of the
// optimizer there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

/// A function of the step.
class ClosedForm : public Schedule {
 public:
  using Form = std::function<double(double)>;
  explicit ClosedForm(Form form) : form_(std::move(form)) {}
  double at(int64_t step) const override { return form_(static_cast<double>(step)); }

 private:
  Form form_;
};

/// The factory of a schedule whose form `make` reads from its parameters.
template <class Make>
auto closed_form(Make make) {
  return [make](const Config& params) -> std::unique_ptr<Schedule> {
    return std::make_unique<ClosedForm>(make(params));
  };
}

double length_of(const Config& params, const char* key, int64_t fallback) {
  return static_cast<double>(read_length_or(params, key, 1, fallback));
}

double half_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

const Parameter kFrom = {"from", "",
                         "the number at the beginning, PyTorch's rate of the optimizer"};

STEPOP_REGISTER(schedules(), "StepLR", closed_form([](const Config& params) {
                  const auto from = params.get<double>("from");
                  const double gamma = params.get("gamma", 0.1);
                  const auto size = static_cast<double>(read_length(params, "step_size", 1));
                  return [=](double t) { return from * std::pow(gamma, std::floor(t / size)); };
                }),
                schedule_about({"Multiplied by a factor now and then, as torch.optim's StepLR.",
                                {kFrom,
                                 {"step_size", "", "steps between two drops: 3000, 30e"},
                                 {"gamma", "0.1", "what it is multiplied by"}}}));

STEPOP_REGISTER(
    schedules(), "MultiStepLR", closed_form([](const Config& params) {
      const auto from = params.get<double>("from");
      const double gamma = params.get("gamma", 0.1);
      std::vector<int64_t> milestones = read_lengths(params, "milestones");
      std::ranges::sort(milestones);
      return [=](double t) {
        const auto passed = std::ranges::upper_bound(milestones, static_cast<int64_t>(t));
        return from * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
      };
    }),
    schedule_about({"Multiplied by a factor at some steps, as torch.optim's MultiStepLR.",
                    {kFrom,
                     {"milestones", "", "the list of these steps: [3000, 5000], [30e, 50e]"},
                     {"gamma", "0.1", "what it is multiplied by"}}}));

STEPOP_REGISTER(schedules(), "ConstantLR", closed_form([](const Config& params) {
                  const auto from = params.get<double>("from");
                  const double factor = params.get("factor", 1.0 / 3);
                  const double end = length_of(params, "total_iters", 5);
                  return [=](double t) { return t < end ? from * factor : from; };
                }),
                schedule_about({"A part of a number, then the number, as torch.optim's ConstantLR.",
                                {kFrom,
                                 {"factor", "0.3333", "the part"},
                                 {"total_iters", "5", "steps with the part: 500, 2e"}}}));

STEPOP_REGISTER(
    schedules(), "LinearLR", closed_form([](const Config& params) {
      const auto from = params.get<double>("from");
      const double first = params.get("start_factor", 1.0 / 3);
      const double last = params.get("end_factor", 1.0);
      const double end = length_of(params, "total_iters", 5);
      return [=](double t) { return from * (first + (last - first) * std::min(t / end, 1.0)); };
    }),
    schedule_about({"A line from one part of a number to another, as torch.optim's LinearLR.",
                    {kFrom,
                     {"start_factor", "0.3333", "the part at the beginning"},
                     {"end_factor", "1", "the part from the end of the line on"},
                     {"total_iters", "5", "steps of the line: 500, 2e"}}}));

STEPOP_REGISTER(schedules(), "ExponentialLR", closed_form([](const Config& params) {
                  const auto from = params.get<double>("from");
                  const auto gamma = params.get<double>("gamma");
                  const auto each = static_cast<double>(CountsEpochs::steps());
                  return [=](double t) { return from * std::pow(gamma, t / each); };
                }),
                schedule_about({"Multiplied by a factor in every step, as torch.optim's "
                                "ExponentialLR.",
                                {kFrom, {"gamma", "", "the factor"}}}));

STEPOP_REGISTER(
    schedules(), "PolynomialLR", closed_form([](const Config& params) {
      const auto from = params.get<double>("from");
      const double power = params.get("power", 1.0);
      const double end = length_of(params, "total_iters", 5);
      return [=](double t) { return from * std::pow(1 - std::min(t / end, 1.0), power); };
    }),
    schedule_about({"A power of what is left of the steps, as torch.optim's PolynomialLR.",
                    {kFrom,
                     {"power", "1", "the power"},
                     {"total_iters", "5", "steps until it is 0: 5000, 20e, end"}}}));

STEPOP_REGISTER(schedules(), "CosineAnnealingLR", closed_form([](const Config& params) {
                  const auto from = params.get<double>("from");
                  const double to = params.get("eta_min", 0.0);
                  const auto steps = static_cast<double>(read_length(params, "T_max", 1));
                  return [=](double t) { return half_cosine(from, to, t / steps); };
                }),
                schedule_about({"A cosine, which rises again, as torch.optim's CosineAnnealingLR.",
                                {kFrom,
                                 {"T_max", "", "steps until it is `eta_min`: 5000, 20e, end"},
                                 {"eta_min", "0", "the smallest number"}}}));

STEPOP_REGISTER(
    schedules(), "CosineAnnealingWarmRestarts", closed_form([](const Config& params) {
      const auto from = params.get<double>("from");
      const double to = params.get("eta_min", 0.0);
      const auto first = static_cast<double>(read_length(params, "T_0", 1));
      const auto longer = static_cast<double>(params.get_at_least("T_mult", 1, 1));
      return [=](double t) {
        double period = first;
        if (longer == 1) t = std::fmod(t, period);
        for (; t >= period; period *= longer) t -= period;
        return half_cosine(from, to, t / period);
      };
    }),
    schedule_about({"Half a cosine again and again, as torch.optim's CosineAnnealingWarmRestarts.",
                    {kFrom,
                     {"T_0", "", "steps of the first fall: 1000, 5e"},
                     {"T_mult", "1", "how many times longer each fall is than the one before"},
                     {"eta_min", "0", "the number at the end of a fall"}}}));

STEPOP_REGISTER(
    schedules(), "CyclicLR", closed_form([](const Config& params) {
      const auto low = params.get<double>("base_lr");
      const auto high = params.get<double>("max_lr");
      const double up = length_of(params, "step_size_up", 2000);
      const double down =
          params.has("step_size_down") ? length_of(params, "step_size_down", 1) : up;
      const auto mode = params.get("mode", "triangular");
      const double gamma = params.get("gamma", 1.0);
      if (mode != "triangular" && mode != "triangular2" && mode != "exp_range") {
        throw params.error("mode", fmt::format("expected triangular, triangular2 or exp_range, "
                                               "found \"{}\"",
                                               mode));
      }
      const double base = mode == "triangular2" ? 0.5 : 1;    // of each cycle
      const double factor = mode == "exp_range" ? gamma : 1;  // of each step
      const auto each = static_cast<double>(CountsEpochs::steps());
      return [=](double t) {
        const double cycle = std::floor(t / (up + down));
        const double into = t - cycle * (up + down);
        const double part = into <= up ? into / up : 1 - (into - up) / down;
        return low + (high - low) * part * std::pow(base, cycle) * std::pow(factor, t / each);
      };
    }),
    schedule_about(
        {"Up and down between two numbers, as torch.optim's CyclicLR; the momentum stays.",
         {{"base_lr", "", "the lower number"},
          {"max_lr", "", "the higher number"},
          {"step_size_up", "2000", "steps of a rise: 2000, 5e"},
          {"step_size_down", "none", "steps of a fall; none: as of a rise"},
          {"mode", "triangular",
           "triangular, triangular2: half as high in each cycle, "
           "exp_range: lower in each step"},
          {"gamma", "1", "with exp_range: the factor of the height in each step"}}}));

}  // namespace
}  // namespace stepop
