// L-BFGS, which computes the loss several times in each step.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/optim/optimizer.h"

namespace stepop {
namespace {

/// A place on the line along which a step searches.
struct Point {
  double t = 0;  ///< How far from the start, in multiples of the direction.
  double loss = 0;
  at::Tensor gradient;  ///< [N]
  double slope = 0;     ///< Of the loss by `t`.
};

/// The lowest point between two of a cubic polynomial through both, within the bounds.
double lowest_between(const Point& a, const Point& b, double from, double to) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (from + to) / 2;
  const double d2 = std::sqrt(square);
  const double lowest =
      a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                 : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(lowest, from), to);
}

/// A point that meets the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5
/// and 3.6), or the best of `most` + 1 tries, as torch.optim.LBFGS searches for it.
class WolfeSearch {
 public:
  WolfeSearch(const std::function<Point(double t)>& at, Point start, double smallest_change,
              int64_t most)
      : at_(at), start_(std::move(start)), smallest_change_(smallest_change), most_(most) {}

  /// `t`: the first try. `largest`: of the direction's numbers.
  Point find(double t, double largest) {
    find_bracket(t);
    narrow(largest);
    return ends_[low_];
  }
  int64_t evaluations() const { return evaluations_; }

 private:
  static constexpr double kDecrease = 1e-4;
  static constexpr double kCurvature = 0.9;

  Point look(double t) {
    ++evaluations_;
    return at_(t);
  }
  bool is_too_high(const Point& point) const {
    return point.loss > start_.loss + kDecrease * point.t * start_.slope;
  }
  bool is_flat(const Point& point) const {
    return std::abs(point.slope) <= -kCurvature * start_.slope;
  }
  void choose_low() { low_ = ends_[0].loss <= ends_[1].loss ? 0 : 1; }

  void find_bracket(double t) {
    Point now = look(t);
    Point before = start_;
    for (; tries_ < most_; ++tries_) {
      const bool is_above = is_too_high(now) || (tries_ > 1 && now.loss >= before.loss);
      is_done_ = !is_above && is_flat(now);
      if (is_above || is_done_ || now.slope >= 0) {
        ends_ = {is_done_ ? now : before, now};
        break;
      }
      const double next =
          lowest_between(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::exchange(now, look(next));
    }
    if (tries_ == most_) ends_ = {start_, now};
    choose_low();
  }

  void narrow(double largest) {
    bool is_at_border = false;
    while (!is_done_ && tries_ < most_) {
      const auto [from, to] = std::minmax(ends_[0].t, ends_[1].t);
      if ((to - from) * largest < smallest_change_) return;
      double t = lowest_between(ends_[0], ends_[1], from, to);
      const double margin = 0.1 * (to - from);
      const bool is_near = std::min(to - t, t - from) < margin;
      if (is_near && (is_at_border || t >= to || t <= from)) {
        t = std::abs(t - to) < std::abs(t - from) ? to - margin : from + margin;
        is_at_border = false;
      } else {
        is_at_border = is_near;
      }
      replace_end(look(t));
      ++tries_;
    }
  }

  void replace_end(Point now) {
    Point& low = ends_[low_];
    Point& high = ends_[1 - low_];
    if (is_too_high(now) || now.loss >= low.loss) {
      high = std::move(now);
      return choose_low();
    }
    is_done_ = is_flat(now);
    if (!is_done_ && now.slope * (high.t - low.t) >= 0) high = low;
    low = std::move(now);
  }

  const std::function<Point(double)>& at_;
  Point start_;
  double smallest_change_;
  int64_t most_;
  int64_t evaluations_ = 0;
  int64_t tries_ = 0;
  bool is_done_ = false;
  std::array<Point, 2> ends_;
  size_t low_ = 0;
};

/// L-BFGS (Liu and Nocedal 1989) as torch.optim.LBFGS. All parameters are one vector [N], of which
/// the tensors of the state are parts.
class LBFGS : public Optimizer {
 public:
  struct Params : OptimizerParams {
    int64_t max_iter = 20;
    int64_t max_eval = 0;
    double tolerance_grad = 1e-7;
    double tolerance_change = 1e-9;
    int64_t history_size = 100;
    std::string line_search_fn = "none";

    Params() { lr = 1; }
    void declare(Parameters& p) {
      p.add("max_iter", max_iter, "changes of the weights in a step, at most", at_least(1));
      p.add("max_eval", max_eval, "losses that a step computes, at most; 0: 1.25 max_iter",
            at_least(0));
      p.add("tolerance_grad", tolerance_grad, "a step ends when no gradient is larger",
            at_least(0));
      p.add("tolerance_change", tolerance_change,
            "a step ends when neither loss nor weights change by more", at_least(0));
      p.add("history_size", history_size,
            "changes that are remembered, two copies of the weights "
            "each",
            at_least(1));
      p.add("line_search_fn", line_search_fn, "none: each change has the length lr",
            one_of({"none", "strong_wolfe"}));
    }
  };

  LBFGS(const Params& params, const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters),
                  {.lr = params.lr,
                   .slots = {"d", "prev_grad", "old_dirs", "old_stps", "history"},
                   .evaluates_again = true}),
        p_(params) {
    refuse_weight_decay(config, "LBFGS");
    if (p_.max_eval == 0) p_.max_eval = p_.max_iter * 5 / 4;
    if (buckets().size() > 1) {
      throw config.error("class",
                         "LBFGS: all parameters are one vector: one type, one device, no groups");
    }
  }

 private:
  /// `history` of the first parameter; behind these numbers are the `history_size` reciprocals of
  /// products of changes and changes of gradients, `ro` in torch.optim.
  enum Place : uint8_t { kIterations, kLength, kCount, kBegin, kScale, kReciprocals };

  void update(const Bucket& /*bucket*/, double /*lr*/, double /*weight_decay*/) override {
    throw Error(
        "LBFGS computes the loss several times in a step: the iterator says how, by "
        "update.step(loss, [=] { return loss_of(batch); })");
  }

  at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const override {
    const at::Tensor& parameter = bucket.parameters[i];
    if (i == 0) flat_.resize(4);
    if (slot == 4) {
      if (i > 0) return {};
      return history_ = at::zeros({kReciprocals + p_.history_size}, at::kDouble);
    }
    if (i == 0) {
      int64_t count = 0;
      for (const auto& each : bucket.parameters) count += each.numel();
      const auto options = parameter.options().requires_grad(false);
      flat_[slot] =
          slot < 2 ? at::zeros({count}, options) : at::zeros({p_.history_size, count}, options);
      begin_ = 0;
    }
    std::vector<int64_t> shape = parameter.sizes().vec();
    if (slot >= 2) shape.insert(shape.begin(), p_.history_size);
    const at::Tensor part = flat_[slot].narrow(-1, begin_, parameter.numel());
    begin_ += parameter.numel();
    if (parameter.dim() == 0) return part.squeeze(-1);
    return slot < 2 ? part.view(shape) : part.unflatten(1, parameter.sizes());
  }

  void step_again(double lr, double loss, const std::function<double()>& evaluate) override {
    const at::NoGradGuard no_grad;
    const Bucket& bucket = *buckets().front();
    const at::Tensor gradient = flat_gradient(bucket);
    if (largest_of(gradient) > p_.tolerance_grad) {
      std::vector<at::Tensor> before;
      for (const auto& parameter : bucket.parameters) before.push_back(parameter.clone());
      const std::array kept = {flat_[0].clone(), flat_[1].clone(), history_.clone()};
      overwritten_.clear();
      try {
        iterate(bucket, gradient, lr, loss, evaluate);
      } catch (...) {
        set(bucket, before);
        flat_[0].copy_(kept[0]);
        flat_[1].copy_(kept[1]);
        history_.copy_(kept[2]);
        for (auto row = overwritten_.rbegin(); row != overwritten_.rend(); ++row) {
          flat_[2][row->place].copy_(row->dir);
          flat_[3][row->place].copy_(row->stp);
        }
        throw;
      }
    }
    for (const auto& count : bucket.steps) count.add_(1);
  }

  void iterate(const Bucket& bucket, at::Tensor gradient, double lr, double loss,
               const std::function<double()>& evaluate) {
    at::Tensor& direction = flat_[0];
    int64_t evaluations = 1;
    for (int64_t i = 1;; ++i) {
      number(kIterations) += 1;
      if (number(kIterations) == 1) {
        direction.copy_(gradient.neg());
        for (const Place place : {kCount, kBegin}) number(place) = 0;
        number(kScale) = 1;
        number(kLength) = std::min(1.0, 1 / gradient.abs().sum().item<double>()) * lr;
      } else {
        remember(gradient.sub(flat_[1]), direction.mul(number(kLength)));
        direction.copy_(direction_of(gradient));
        number(kLength) = lr;
      }
      flat_[1].copy_(gradient);
      const double loss_before = loss;
      const double slope = dot(gradient, direction);
      if (slope > -p_.tolerance_change) return;

      if (p_.line_search_fn == "strong_wolfe") {
        std::vector<at::Tensor> start;
        for (const auto& parameter : bucket.parameters) start.push_back(parameter.clone());
        const std::function<Point(double)> at = [&](double t) {
          move(bucket, t);
          const double loss_there = evaluate();
          at::Tensor gradient_there = flat_gradient(bucket);
          set(bucket, start);
          const double slope_there = dot(gradient_there, direction);
          return Point{t, loss_there, std::move(gradient_there), slope_there};
        };
        WolfeSearch search(at, {0, loss, gradient, slope}, p_.tolerance_change,
                           p_.max_eval - evaluations);
        const Point best = search.find(number(kLength), largest_of(direction));
        number(kLength) = best.t;
        loss = best.loss;
        gradient = best.gradient;
        evaluations += search.evaluations();
        move(bucket, best.t);
      } else {
        move(bucket, number(kLength));
        if (i == p_.max_iter) return;
        loss = evaluate();
        gradient = flat_gradient(bucket);
        ++evaluations;
      }
      const bool is_over = i == p_.max_iter || evaluations >= p_.max_eval ||
                           largest_of(gradient) <= p_.tolerance_grad ||
                           largest_of(direction.mul(number(kLength))) <= p_.tolerance_change ||
                           std::abs(loss - loss_before) < p_.tolerance_change;
      if (is_over) return;
    }
  }

  /// `dir`: how the gradient changed; `stp`: how the weights did.
  void remember(const at::Tensor& dir, const at::Tensor& stp) {
    const double product = dot(dir, stp);
    if (!(product > 1e-10)) return;
    const bool is_full = static_cast<int64_t>(number(kCount)) == p_.history_size;
    if (is_full) {
      number(kBegin) = static_cast<double>(row(1));
      number(kCount) -= 1;
    }
    const int64_t place = row(static_cast<int64_t>(number(kCount)));
    overwritten_.push_back({place, flat_[2][place].clone(), flat_[3][place].clone()});
    flat_[2][place].copy_(dir);
    flat_[3][place].copy_(stp);
    reciprocal(place) = 1 / product;
    number(kScale) = product / dot(dir, dir);
    number(kCount) += 1;
  }

  /// The approximate inverse of the Hessian times the falling gradient, by two loops.
  at::Tensor direction_of(const at::Tensor& gradient) {
    const auto count = static_cast<int64_t>(number(kCount));
    std::vector<double> parts(static_cast<size_t>(count));
    at::Tensor q = gradient.neg();
    for (int64_t i = count - 1; i >= 0; --i) {
      const int64_t place = row(i);
      double& part = parts[static_cast<size_t>(i)];
      part = dot(flat_[3][place], q) * reciprocal(place);
      q.add_(flat_[2][place], -part);
    }
    q.mul_(number(kScale));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = row(i);
      const double other = dot(flat_[2][place], q) * reciprocal(place);
      q.add_(flat_[3][place], parts[static_cast<size_t>(i)] - other);
    }
    return q;
  }

  /// The place of the i-th oldest remembered change.
  int64_t row(int64_t i) const {
    return (static_cast<int64_t>(number(kBegin)) + i) % p_.history_size;
  }
  double& number(Place place) const { return history_.mutable_data_ptr<double>()[place]; }
  double& reciprocal(int64_t place) const {
    return history_.mutable_data_ptr<double>()[kReciprocals + place];
  }
  static double dot(const at::Tensor& a, const at::Tensor& b) { return a.dot(b).item<double>(); }
  static double largest_of(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

  /// The gradients of all parameters, [N]; 0 where one has none.
  static at::Tensor flat_gradient(const Bucket& bucket) {
    std::vector<at::Tensor> all;
    for (const auto& parameter : bucket.parameters) {
      const at::Tensor& gradient = parameter.grad();
      all.push_back(gradient.defined()
                        ? gradient.reshape(-1)
                        : at::zeros({parameter.numel()}, parameter.options().requires_grad(false)));
    }
    return at::cat(all);
  }

  /// Adds the direction `t` times.
  void move(const Bucket& bucket, double t) const {
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      bucket.parameters[i].add_(bucket.slots[0][i], t);
    }
  }

  static void set(const Bucket& bucket, const std::vector<at::Tensor>& values) {
    for (size_t i = 0; i < values.size(); ++i) bucket.parameters[i].copy_(values[i]);
  }

  struct Row {
    int64_t place;
    at::Tensor dir;
    at::Tensor stp;
  };

  Params p_;
  mutable std::vector<at::Tensor> flat_;  ///< `d`, `prev_grad` [N]; `old_dirs`, `old_stps` [H, N].
  mutable at::Tensor history_;
  mutable int64_t begin_ = 0;     ///< In a vector, of the next parameter's part.
  std::vector<Row> overwritten_;  ///< By this step.
};

STEPOP_REGISTER_OPTIMIZER(
    LBFGS, {"L-BFGS (Liu and Nocedal 1989), as torch.optim.LBFGS: it computes the loss several "
            "times in a step, for iterators that say how."});

}  // namespace
}  // namespace stepop
