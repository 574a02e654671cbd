#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"

namespace stepop {

/// The state of a schedule that follows a metric: `{class: plateau, from: 1e-3, factor: 0.1,
/// metric: validation/eval_op/loss, patience: 10}`. The rules are those of torch.optim's
/// ReduceLROnPlateau, except that a relative threshold is of the size of the best value, so that
/// metrics below 0 have one too.
class Plateau {
 public:
  struct Params {
    double from = 0;
    std::string metric;
    bool more_is_better = false;
    double factor = 0.1;
    int64_t patience = 10;
    double threshold = 1e-4;
    std::string threshold_mode = "rel";
    int64_t cooldown = 0;
    double min = 0;

    void declare(Parameters& p);
  };

  /// `config`: its place.
  Plateau(const Params& params, const Config& config);

  /// The current number.
  double value() const;
  const std::string& metric() const { return metric_; }
  bool more_is_better() const { return more_is_better_; }
  /// How many values without a better one the number outlasts.
  int64_t patience() const { return patience_; }
  /// The key of the schedule, `optimizer/lr`.
  const std::string& path() const { return path_; }

  /// Takes the metric's value at step `step`. A value for the same step as the last value, or an
  /// earlier step, changes nothing. Returns whether the number fell.
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

  double scale_ = 1;   ///< The factor by which `from_` was multiplied so far.
  double best_;        ///< Infinite before the first value.
  int64_t bad_ = 0;    ///< Values since the best value.
  int64_t waits_ = 0;  ///< Values of the cooldown that are left.
  int64_t last_step_ = -1;
};

/// The schedules of a run that follow metrics. A schedule is built from its part of the config
/// alone, so it finds this object through a Scope.
class MetricSchedules {
 public:
  /// During its lifetime, schedules that this thread builds are added to `schedules`.
  class Scope {
   public:
    explicit Scope(MetricSchedules& schedules);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MetricSchedules* before_;
  };

  /// Adds a schedule to the current scope's schedules. Throws UsageError, at the place in the
  /// config, without a scope.
  static void add(std::shared_ptr<Plateau> plateau, const Config& params);

  /// Takes the numbers of a log or an evaluation, by their full names. Returns messages about the
  /// changes: `optimizer/lr falls to 0.0001: ...`.
  std::vector<std::string> observe(int64_t step, const OrderedMap<double>& scalars);

  const std::vector<std::shared_ptr<Plateau>>& all() const { return plateaus_; }

  State save() const;
  /// A schedule that is not in `state` keeps its initial state.
  void load(const State& state);

 private:
  std::vector<std::shared_ptr<Plateau>> plateaus_;
};

}  // namespace stepop
