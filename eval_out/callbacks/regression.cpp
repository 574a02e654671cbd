#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>

#include "eval_out/callbacks/row_values.h"

namespace stepop {
namespace {

/// Sums over the rows, one for each of the numbers that a row has; float64 [numbers].
class Sums {
 public:
  explicit Sums(int64_t numbers)
      : absolute_(at::zeros({numbers}, at::kDouble)),
        squares_(absolute_.clone()),
        mean_(absolute_.clone()),
        spread_(absolute_.clone()) {}

  /// Both [rows, numbers].
  void add(const at::Tensor& prediction, const at::Tensor& target) {
    const at::Tensor error = prediction.sub(target);
    absolute_ += error.abs().sum(0);
    squares_ += error.square().sum(0);
    // Chan, Golub and LeVeque, 1979: without the cancellation of a sum of squares.
    const auto before = static_cast<double>(rows_);
    const auto count = static_cast<double>(target.size(0));
    const at::Tensor mean = target.mean(0);
    const at::Tensor step = mean.sub(mean_);
    mean_.add_(step, count / (before + count));
    spread_.add_(target.sub(mean).square().sum(0));
    spread_.add_(step.square(), before * count / (before + count));
    rows_ += target.size(0);
  }

  double mae() const { return absolute_.div(rows_).mean().item<double>(); }
  double rmse() const { return squares_.div(rows_).sqrt().mean().item<double>(); }

  double r2() const {
    double total = 0;
    for (int64_t i = 0; i < squares_.numel(); ++i) {
      const auto residual = squares_[i].item<double>();
      const auto spread = spread_[i].item<double>();
      // A target that is always the same: 1 when it is hit, else 0, as in scikit-learn.
      total += spread > 0 ? 1 - residual / spread : (residual == 0 ? 1 : 0);
    }
    return total / static_cast<double>(squares_.numel());
  }

 private:
  int64_t rows_ = 0;
  at::Tensor absolute_, squares_, mean_;
  at::Tensor spread_;  ///< Of the target: the sum of the squared distances to its mean.
};

void check_shapes(const RowValues& prediction, const RowValues& target) {
  for (const RowValues* values : {&prediction, &target}) {
    if (!c10::isComplexType(values->dtype())) continue;
    throw Error(fmt::format("{} must hold real numbers, found complex ones", values->name()));
  }
  check_pair(prediction, target);
}

Logs regression(const CallbackArguments& arguments) {
  using From = RowValues::From;
  const RowValues prediction(arguments, arguments.params.get("prediction", "prediction"),
                             "prediction", From::kFile);
  const RowValues target(arguments, arguments.params.get("target", "target"), "target",
                         From::kFileOrDataset);
  check_shapes(prediction, target);
  int64_t numbers = 1;
  for (const int64_t length : target.shape()) numbers *= length;
  if (numbers == 0) throw Error(target.name() + " holds no numbers");
  Sums sums(numbers);
  const int64_t rows = std::min(prediction.rows_per_block(), target.rows_per_block());
  for_each_block(prediction.rows(), rows, [&](int64_t first, int64_t count) {
    const at::Tensor said = prediction.read(first, count);
    const at::Tensor truth = target.read(first, count);
    prediction.refuse_nan(said, first);
    target.refuse_nan(truth, first);
    sums.add(said.to(at::kDouble).reshape({count, numbers}),
             truth.to(at::kDouble).reshape({count, numbers}));
  });
  Logs logs;
  logs.scalars.set("mae", sums.mae());
  logs.scalars.set("rmse", sums.rmse());
  if (prediction.rows() > 1) logs.scalars.set("r2", sums.r2());
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    regression, regression,
    {"Mean absolute error, root mean squared error and R2 of predicted numbers.",
     {{"prediction", "prediction", "the key of the predicted numbers in the outputs"},
      {"target", "target", "the key of the true ones, in the outputs or the dataset"}}});

}  // namespace
}  // namespace stepop
