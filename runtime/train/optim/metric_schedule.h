#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"

namespace stepop {

/// What a schedule that follows a metric knows: `{class: plateau, from: 1e-3, factor: 0.1, metric:
/// validation/eval_op/loss, patience: 10}`. The rules are those of torch.optim's ReduceLROnPlateau.
class Plateau {
 public:
  /// Throws UsageError for a bad value.
  explicit Plateau(const Config& params);

  /// The number of now.
  double value() const;
  const std::string& metric() const { return metric_; }
  bool more_is_better() const { return more_is_better_; }
  /// `optimizer/lr`.
  const std::string& path() const { return path_; }

  /// Takes a value of the metric, of the step `step`; one of the same step as the last one, or of
  /// an earlier one, changes nothing. Returns whether the number fell.
  bool observe(int64_t step, double metric);

  at::Tensor save() const;
  /// Throws Error for a tensor that `save` did not make.
  void load(const at::Tensor& state);

 private:
  bool is_better(double metric) const;

  std::string path_;
  std::string metric_;
  double from_;
  double factor_;
  double min_;
  int64_t patience_;
  int64_t cooldown_;
  double threshold_;
  bool is_relative_;
  bool more_is_better_;

  double scale_ = 1;   ///< By which `from_` was multiplied so far.
  double best_;        ///< Infinite before the first value.
  int64_t bad_ = 0;    ///< Values since the best one.
  int64_t waits_ = 0;  ///< Values of the cooldown that are left.
  int64_t last_step_ = -1;
};

/// The schedules of a run that follow metrics. They find this when they are built, within a Scope:
/// a schedule is made by its part of the config alone.
class MetricSchedules {
 public:
  /// While it lives, schedules that this thread builds are added to `schedules`.
  class Scope {
   public:
    explicit Scope(MetricSchedules& schedules);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MetricSchedules* before_;
  };

  /// Adds one to those of the scope at hand. Throws UsageError, at its place in the config, when
  /// there is none.
  static void add(std::shared_ptr<Plateau> plateau, const Config& params);

  /// Takes the numbers of a log or an evaluation, by their full names. Returns what there is to say
  /// of it: `optimizer/lr falls to 0.0001: ...`.
  std::vector<std::string> observe(int64_t step, const OrderedMap<double>& scalars);

  const std::vector<std::shared_ptr<Plateau>>& all() const { return plateaus_; }

  State save() const;
  /// A schedule that `state` does not know begins anew.
  void load(const State& state);

 private:
  std::vector<std::shared_ptr<Plateau>> plateaus_;
};

}  // namespace stepop
