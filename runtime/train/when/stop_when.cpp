#include "runtime/train/when/stop_when.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/base/number_text.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

constexpr const char* kKey = "stop_when";
constexpr const char* kExample =
    "{metric: validation/eval_op/accuracy/accuracy, patience: 5e, mode: max}";

at::Tensor number(int64_t value) {
  return at::scalar_tensor(value, at::TensorOptions().dtype(at::kLong));
}
at::Tensor number(double value) {
  return at::scalar_tensor(value, at::TensorOptions().dtype(at::kDouble));
}

const at::Tensor& find(const State& state, const char* key, at::ScalarType type, int64_t dims = 0) {
  const auto found = state.find(key);
  if (found == state.end()) {
    throw Error(fmt::format("{}.{}: missing from the checkpoint", kKey, key));
  }
  if (found->second.scalar_type() != type || found->second.dim() != dims) {
    throw Error(fmt::format("{}.{}: of another type or shape than was written", kKey, key));
  }
  return found->second;
}

Elapsed find_elapsed(const State& state, const char* step, const char* minutes) {
  return {find(state, step, at::kLong).item<int64_t>(),
          find(state, minutes, at::kDouble).item<double>()};
}

/// A number without a unit; nothing for a span.
std::optional<int64_t> plain_number(const Config& config, const char* key) {
  const Value* value = config.peek(key);
  if (value == nullptr) return std::nullopt;
  const bool is_digits = value->is_text() && !value->as_text().empty() &&
                         value->as_text().find_first_not_of("0123456789") == std::string::npos;
  if (!value->is_int() && !value->is_float() && !is_digits) return std::nullopt;
  const Duration number = read_duration(config, key);
  if (number.amount != std::floor(number.amount)) {
    throw config.error(key, fmt::format("expected a whole number of values, or a span such as 5e, "
                                        "found {}",
                                        value->describe()));
  }
  return static_cast<int64_t>(number.amount);
}

}  // namespace

StopWhen::StopWhen(const Config& config, int64_t steps_per_epoch)
    : config_(config.at(kKey)), steps_per_epoch_(std::max<int64_t>(steps_per_epoch, 1)) {
  if (!config.has(kKey)) return;
  const Value* value = config.peek(kKey);
  if (!value->is_map()) {
    throw config.error(kKey,
                       fmt::format("expected a map {}, found {}", kExample, value->describe()));
  }
  const auto metric = config_.get<std::string>("metric");
  more_is_better_ = read_more_is_better(config_);
  patience_ = read_duration(config_, "patience");
  patience_in_values_ = plain_number(config_, "patience").value_or(0);
  min_delta_ = own_key<double>(config_, "min_delta");
  if (std::isinf(min_delta_)) throw config_.error("min_delta", "expected a finite number");
  metric_ = metric;
}

bool StopWhen::is_better(double value) const {
  if (std::isnan(value)) return false;
  if (std::isnan(best_)) return true;
  return more_is_better_ ? value > best_ + min_delta_ : value < best_ - min_delta_;
}

void StopWhen::observe(const OrderedMap<double>& scalars, const Elapsed& now) {
  if (!is_given()) return;
  const double* value = scalars.find(metric_);
  if (value == nullptr) return;
  if (!last_) since_ = now;
  const bool is_seen_before = last_ && last_->step == now.step;
  last_ = now;
  if (!is_better(*value)) {
    if (!is_seen_before) ++not_better_;
    return;
  }
  best_ = *value;
  since_ = now;
  not_better_ = 0;
}

std::optional<int64_t> StopWhen::patience_in_values() const {
  return counts_values() ? std::optional(patience_in_values_) : std::nullopt;
}

std::optional<Duration> StopWhen::patience_as_span() const {
  return is_given() && !counts_values() ? std::optional(patience_) : std::nullopt;
}

double StopWhen::waited() const {
  if (!last_) return 0;
  const Duration::Axis axis = patience_.axis();
  return (last_->on(axis) - since_.on(axis)) / patience_.length(steps_per_epoch_) *
         patience_.amount;
}

bool StopWhen::is_over() const {
  if (counts_values()) return not_better_ >= patience_in_values_;
  return is_given() && last_ && waited() >= patience_.amount - kPeriodTolerance;
}

std::optional<std::string> StopWhen::reason() const {
  if (!is_over()) return std::nullopt;
  const std::string waited_for = counts_values() ? counted(not_better_, "value") + " in a row"
                                                 : Duration{waited(), patience_.unit}.text();
  if (std::isnan(best_)) {
    return fmt::format("{} has been NaN since step {}, for {}", metric_,
                       with_thousands(since_.step), waited_for);
  }
  const std::string by =
      min_delta_ > 0 ? fmt::format(" by more than {}", short_number(min_delta_)) : "";
  return fmt::format("{} has not been better than {} (step {}){} for {}", metric_,
                     short_number(best_), with_thousands(since_.step), by, waited_for);
}

std::vector<WatchedNumber> StopWhen::watched_numbers() const {
  if (!is_given() || last_) return {};
  return {{config_, "metric", metric_}};
}

std::string StopWhen::identity() const { return (more_is_better_ ? "max " : "min ") + metric_; }

State StopWhen::save() const {
  if (!is_given() || !last_) return {};
  const std::string text = identity();
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return {{"metric", bytes},
          {"best", number(best_)},
          {"step", number(since_.step)},
          {"minutes", number(since_.minutes)},
          {"last_step", number(last_->step)},
          {"last_minutes", number(last_->minutes)},
          {"not_better", number(counted_steps_before_ ? int64_t{-1} : not_better_)}};
}

void StopWhen::load(const State& state) {
  double best = std::numeric_limits<double>::quiet_NaN();
  Elapsed since;
  std::optional<Elapsed> last;
  int64_t not_better = 0;
  counted_steps_before_ = false;
  if (is_given() && !state.empty()) {
    const at::Tensor bytes = find(state, "metric", at::kByte, 1).cpu().contiguous();
    const std::string saved(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes());
    if (saved == identity()) {
      best = find(state, "best", at::kDouble).item<double>();
      since = find_elapsed(state, "step", "minutes");
      last = find_elapsed(state, "last_step", "last_minutes");
      not_better =
          state.contains("not_better") ? find(state, "not_better", at::kLong).item<int64_t>() : -1;
      counted_steps_before_ = not_better < 0;
    }
  }
  best_ = best;
  since_ = since;
  last_ = last;
  not_better_ = std::max<int64_t>(not_better, 0);
}

}  // namespace stepop
