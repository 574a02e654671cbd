#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/logs.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/optim/schedule.h"

namespace stepop::losses {

/// The function of a loss: returns one number [], one for each example [B], or a map [B, ...], such
/// as one for each pixel. The loss is the mean.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// A loss that a training can have.
struct LossSpec {
  LossFunction function;
  std::vector<std::string> tags = {};  ///< The sums that include the loss: `G`, `D`.
  /// With a weight, the loss is on unless the config changes the weight; without, the config must
  /// turn the loss on.
  std::optional<double> weight = {};
};
using LossSpecs = OrderedMap<LossSpec>;

/// The losses of a training by name: their functions, weights, tags and recorded values.
///
///   LossManager losses(context, "losses", {{"G_L1", {of_two(l1), {"G"}, 100}},
///                                          {"G_GAN", {gan, {"G"}, 1}}});
///   update.step(losses("G_L1", fake, real) + losses("G_GAN", logits));
///   return losses.take_scalars();
///
/// A part of the config turns losses on, sets their weights as numbers, schedules or ramps, and
/// adds losses from `loss_functions()`:
///
///   losses:
///     G_L1: {weight: {class: linear, from: 100, to: 10, steps: 1000}}
///     KL: {start_ramp_it: 2000, start_ramp_val: 0, end_ramp_it: 3500, end_ramp_val: 1}
///     mine: {loss: l2, weight: 3, tags: [G]}
///
/// A ramp is `start_ramp_val` up to step `start_ramp_it`, `end_ramp_val` from `end_ramp_it` on, and
/// linear between. A step is the number of complete training steps.
///
/// Recording never waits for a GPU; reading recorded values does.
class LossManager {
 public:
  static constexpr int64_t kHistory = 1000;

  /// `context` must outlive the object. The newest `history` values of each loss are kept, and
  /// saved with checkpoints under `path`; with 0, none. Throws UsageError with the place for an
  /// unknown name, a loss without a weight or with two, a ramp that does not end after its start,
  /// and when no loss is on.
  LossManager(const Context& context, const std::string& path, const LossSpecs& specs,
              int64_t history = kHistory);
  LossManager(const LossManager&) = delete;
  LossManager& operator=(const LossManager&) = delete;

  bool has(std::string_view name) const { return losses_.contains(name); }
  /// The losses that are on, of one tag or all, in the order of the specs.
  std::vector<std::string> names(std::string_view tag = {}) const;
  /// Whether the weight is 0 at every step: such a loss is computed, but not trained.
  bool is_only_watched(std::string_view name) const { return loss(name).is_only_watched; }
  /// The weight at this step. Like all functions below, throws Error for a loss that is not on.
  double weight(std::string_view name) const;

  /// Computes a loss and records its mean. Returns the mean times the weight, []. The message of an
  /// exception from the loss's function gets the name in front.
  template <class... Inputs>
  at::Tensor operator()(std::string_view name, const Inputs&... inputs) {
    return compute(name, {inputs...});
  }
  at::Tensor compute(std::string_view name, const std::vector<at::Tensor>& inputs);

  /// The output of a loss's function, without a weight and without recording: [], [B] or [B, ...].
  at::Tensor values(std::string_view name, const std::vector<at::Tensor>& inputs) const;

  /// The sum of weight * value over values of one shape. Throws Error if all losses are off.
  at::Tensor weighted_sum(const OrderedMap<at::Tensor>& values) const;

  /// The weighted sum, [] with its graph, of a tag's losses that were computed since the last
  /// `take_scalars`. Throws Error when there are no such losses.
  at::Tensor total(std::string_view tag) const;

  /// Values for a log since the last call: each loss as recorded, and `weight/<loss>` unless the
  /// weight is a plain number. Releases the graphs.
  Scalars take_scalars();

  /// The map from the newest call, [B, ...] without a graph; undefined if there is none.
  const at::Tensor& map(std::string_view name) const { return loss(name).map; }

  /// The newest value; empty before the first.
  std::optional<double> latest(std::string_view name) const;
  /// The mean of the newest `count` values, or of all if there are fewer.
  std::optional<double> mean(std::string_view name, int64_t count) const;
  /// The kept values, the oldest first.
  std::vector<double> history(std::string_view name) const;
  /// The newest values of a tag's losses that have values.
  OrderedMap<double> latest_of(std::string_view tag) const;

 private:
  struct Loss {
    LossSpec spec;
    Scheduled weight;
    bool is_only_watched = false;
    bool is_weight_fixed = false;
    at::Tensor ring = {};      ///< [history] float64, on the device of the values.
    int64_t recorded = 0;      ///< All values so far: the next goes to recorded % history.
    at::Tensor mean = {};      ///< The mean since the last take_scalars, [], without a graph.
    at::Tensor weighted = {};  ///< The weighted mean, with its graph.
    at::Tensor map = {};
    bool was_computed = false;
  };

  void add(const std::string& name, const Config& part, const LossSpecs& specs);
  /// Warns once of losses that no op of the first steps computed.
  void look_for_unused();
  const Loss& loss(std::string_view name) const { return losses_.at(name); }
  Loss& loss(std::string_view name);
  void record(Loss& loss) const;
  State save() const;
  void load(const State& state);

  const Context& context_;
  bool has_looked_for_unused_ = false;
  int64_t length_;
  OrderedMap<Loss> losses_;
};

/// Sets of losses by name, such as `basic+vgg`, for one kind of training. A factory gets the whole
/// config.
using LossSpecRegistry = Registry<LossSpecs(const Config&, const Context&)>;
LossSpecRegistry& loss_specs();

/// The set that the config names at `path`, by default `fallback`. Throws UsageError with the known
/// names for an unknown name.
LossSpecs named_loss_specs(const Context& context, const std::string& path,
                           const std::string& fallback);

/// Functions that a config can name by `loss`.
using LossFunctionRegistry = Registry<LossFunction(const Config&)>;
LossFunctionRegistry& loss_functions();

/// A loss of two tensors, such as `l1`.
LossFunction of_two(at::Tensor (*function)(const at::Tensor& a, const at::Tensor& b));

}  // namespace stepop::losses

/// Registers a set of losses under the name that a config uses, by a function
/// `LossSpecs mine(const stepop::Context& context)`:
/// STEPOP_REGISTER_LOSS_SPEC("mine", mine, {"L1 and my own."});
#define STEPOP_REGISTER_LOSS_SPEC(name, function, ...)                  \
  STEPOP_REGISTER(                                                      \
      ::stepop::losses::loss_specs(), name,                             \
      [](const ::stepop::Config&, const ::stepop::Context& context)     \
          -> ::stepop::losses::LossSpecs { return function(context); }, \
      __VA_ARGS__)

/// Registers a loss of two tensors under the name that a config uses.
#define STEPOP_REGISTER_LOSS_FUNCTION(name, function, ...)            \
  STEPOP_REGISTER(                                                    \
      ::stepop::losses::loss_functions(), #name,                      \
      [](const ::stepop::Config&) -> ::stepop::losses::LossFunction { \
        return ::stepop::losses::of_two(function);                    \
      },                                                              \
      __VA_ARGS__)
