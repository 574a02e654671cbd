#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "eval_out/callbacks/row_values.h"

namespace stepop {
namespace {

/// Sums over the rows, one sum for each number in a row; float64 [numbers].
class Sums {
 public:
  explicit Sums(int64_t numbers)
      : absolute_(at::zeros({numbers}, at::kDouble)),
        squares_(absolute_.clone()),
        mean_(absolute_.clone()),
        spread_(absolute_.clone()) {}

  /// Adds rows; both tensors are [rows, numbers].
  void add(const at::Tensor& prediction, const at::Tensor& target) {
    const at::Tensor error = prediction.sub(target);
    absolute_ += error.abs().sum(0);
    squares_ += error.square().sum(0);
    // Chan, Golub and LeVeque, 1979: this avoids the cancellation in a sum of squares.
    const auto before = static_cast<double>(rows_);
    const auto count = static_cast<double>(target.size(0));
    const at::Tensor mean = target.mean(0);
    const at::Tensor step = mean.sub(mean_);
    mean_.add_(step, count / (before + count));
    spread_.add_(target.sub(mean).square().sum(0));
    spread_.add_(step.square(), before * count / (before + count));
    rows_ += target.size(0);
  }

  int64_t numbers() const { return squares_.numel(); }

  /// The metrics of each number. r2 is as in scikit-learn: for a constant target, it is 1 if every
  /// prediction is exact, else 0.
  double mae(int64_t i) const { return at(absolute_, i) / static_cast<double>(rows_); }
  double rmse(int64_t i) const { return std::sqrt(at(squares_, i) / static_cast<double>(rows_)); }
  double r2(int64_t i) const {
    const double residual = at(squares_, i);
    const double spread = at(spread_, i);
    return spread > 0 ? 1 - residual / spread : (residual == 0 ? 1 : 0);
  }

  /// The mean over all numbers.
  double mean_of(double (Sums::*of_one)(int64_t) const) const {
    double total = 0;
    for (int64_t i = 0; i < numbers(); ++i) total += (this->*of_one)(i);
    return total / static_cast<double>(numbers());
  }

 private:
  static double at(const at::Tensor& sums, int64_t i) { return sums.const_data_ptr<double>()[i]; }

  int64_t rows_ = 0;
  at::Tensor absolute_, squares_, mean_;
  at::Tensor spread_;  ///< The sum of the target's squared distances to its mean.
};

void check_shapes(const RowValues& prediction, const RowValues& target) {
  for (const RowValues* values : {&prediction, &target}) {
    if (!c10::isComplexType(values->dtype())) continue;
    throw Error(fmt::format("{} must hold real numbers, found complex ones", values->name()));
  }
  check_pair(prediction, target);
}

struct RegressionParams {
  std::string prediction = "prediction";
  std::string target = "target";
  std::optional<std::vector<std::string>> names;

  void declare(Parameters& p) {
    p.add("prediction", prediction, "the key of the predicted numbers in the outputs");
    p.add("target", target, "the key of the true ones, in the outputs or the dataset");
    p.add("names", names,
          "what the numbers of a row are, in order: each has values of its own, <name>/mae");
  }
};

Logs regression(const CallbackArguments& arguments, const RegressionParams& params) {
  using From = RowValues::From;
  const RowValues prediction(arguments, params.prediction, "prediction", From::kFile);
  const RowValues target(arguments, params.target, "target", From::kFileOrDataset);
  check_shapes(prediction, target);
  int64_t numbers = 1;
  for (const int64_t length : target.shape()) numbers *= length;
  if (numbers == 0) throw Error(target.name() + " holds no numbers");
  const auto names = params.names.value_or(std::vector<std::string>());
  if (params.names && static_cast<int64_t>(names.size()) != numbers) {
    throw arguments.params.error(
        "names", fmt::format("expected {}, one for each number of {}, found {}", numbers,
                             target.name(), names.size()));
  }
  Sums sums(numbers);
  const int64_t rows = std::min(prediction.rows_per_block(), target.rows_per_block());
  for_each_block(prediction.rows(), rows, [&](int64_t first, int64_t count) {
    const at::Tensor predicted = prediction.read(first, count);
    const at::Tensor truth = target.read(first, count);
    prediction.refuse_nan(predicted, first);
    target.refuse_nan(truth, first);
    sums.add(predicted.to(at::kDouble).reshape({count, numbers}),
             truth.to(at::kDouble).reshape({count, numbers}));
  });
  Logs logs;
  const bool has_r2 = prediction.rows() > 1;
  logs.scalars.set("mae", sums.mean_of(&Sums::mae));
  logs.scalars.set("rmse", sums.mean_of(&Sums::rmse));
  if (has_r2) logs.scalars.set("r2", sums.mean_of(&Sums::r2));
  for (int64_t i = 0; i < static_cast<int64_t>(names.size()); ++i) {
    const std::string& name = names[static_cast<size_t>(i)];
    logs.scalars.set(name + "/mae", sums.mae(i));
    logs.scalars.set(name + "/rmse", sums.rmse(i));
    if (has_r2) logs.scalars.set(name + "/r2", sums.r2(i));
  }
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    regression, regression,
    {"Mean absolute error, root mean squared error and R2 of predicted numbers."});
STEPOP_CALLBACK_KEYS(regression, {"prediction", KeyParameter::From::kFile}, {"target"});

}  // namespace
}  // namespace stepop
