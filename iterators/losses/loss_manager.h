#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/registry.h"
#include "runtime/core/log/logs.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/optim/schedule.h"

namespace stepop::losses {

/// What a loss makes of its inputs: one number [], one for each example [B], or a map [B, ...], as
/// of each pixel. Its value is the mean.
using LossFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

/// A loss that a training can have.
struct LossSpec {
  LossFunction function;
  std::vector<std::string> tags = {};  ///< Which sums it is a part of: `G`, `D`.
  /// With it the loss is on, unless the config gives another weight; without it, the config says
  /// so.
  std::optional<double> weight = {};
};
using LossSpecs = OrderedMap<LossSpec>;

/// The losses of a training by name: their functions, weights and tags, and what they were.
///
///   LossManager losses(context, "losses", {{"G_L1", {of_two(l1), {"G"}, 100}},
///                                          {"G_GAN", {gan, {"G"}, 1}}});
///   update.step(losses("G_L1", fake, real) + losses("G_GAN", logits));
///   return losses.take_scalars();
///
/// A part of the config turns losses on and weighs them, by numbers, schedules or ramps, and names
/// further ones by `loss_functions()`:
///
///   losses:
///     G_L1: {weight: {class: linear, from: 100, to: 10, steps: 1000}}
///     KL: {start_ramp_it: 2000, start_ramp_val: 0, end_ramp_it: 3500, end_ramp_val: 1}
///     mine: {loss: l2, weight: 3, tags: [G]}
///
/// A ramp is `start_ramp_val` up to step `start_ramp_it`, `end_ramp_val` from `end_ramp_it` on, and
/// linear between. Steps are training steps that are complete.
///
/// Recording never waits for a GPU; asking for what was recorded does.
class LossManager {
 public:
  static constexpr int64_t kHistory = 1000;

  /// `context` outlives it. Of each loss the newest `history` values are kept, and saved with
  /// checkpoints under `path`; with 0 none. Throws UsageError with its place for an unknown name, a
  /// loss without a weight or with two, a ramp that does not end after it began, and when no loss
  /// is on.
  LossManager(const Context& context, const std::string& path, const LossSpecs& specs,
              int64_t history = kHistory);
  LossManager(const LossManager&) = delete;
  LossManager& operator=(const LossManager&) = delete;

  bool has(std::string_view name) const { return losses_.contains(name); }
  /// Those that are on, of a tag or all, in the order of the specs.
  std::vector<std::string> names(std::string_view tag = {}) const;
  /// Whether the loss has the weight 0 at every step: it is then looked at, but not trained.
  bool is_only_watched(std::string_view name) const { return loss(name).is_only_watched; }
  /// The weight of this step. Throws Error for a loss that is not on, as all that follows.
  double weight(std::string_view name) const;

  /// Computes a loss and records its mean: the mean times the weight, []. Where its function
  /// throws, the message begins with the name.
  template <class... Inputs>
  at::Tensor operator()(std::string_view name, const Inputs&... inputs) {
    return compute(name, {inputs...});
  }
  at::Tensor compute(std::string_view name, const std::vector<at::Tensor>& inputs);

  /// What the function of a loss gives, without a weight and a record: [], [B] or [B, ...].
  at::Tensor values(std::string_view name, const std::vector<at::Tensor>& inputs) const;

  /// The sum of weight * value, of values of one shape. Throws Error when none of them is on.
  at::Tensor weighted_sum(const OrderedMap<at::Tensor>& values) const;

  /// The sum of the losses of a tag that were computed since the last `take_scalars`, weighted,
  /// with their graphs: []. Throws Error when none was.
  at::Tensor total(std::string_view tag) const;

  /// For a log, what was computed since the last call: each loss as it was recorded, and
  /// `weight/<loss>` where the weight is no plain number. Lets go of the graphs.
  Scalars take_scalars();

  /// The map that the newest call gave, [B, ...] without a graph; undefined where there is none.
  const at::Tensor& map(std::string_view name) const { return loss(name).map; }

  /// The newest value; none when there is none yet.
  std::optional<double> latest(std::string_view name) const;
  /// The mean of the newest `count` values, or of as many as there are.
  std::optional<double> mean(std::string_view name, int64_t count) const;
  /// The values that are kept, the oldest first.
  std::vector<double> history(std::string_view name) const;
  /// The newest values of the losses of a tag that have one.
  OrderedMap<double> latest_of(std::string_view tag) const;

 private:
  struct Loss {
    LossSpec spec;
    Scheduled weight;
    bool is_only_watched = false;
    bool is_weight_fixed = false;
    at::Tensor ring = {};      ///< [history] float64, on the device of the values.
    int64_t recorded = 0;      ///< Values ever: the next one goes to recorded % history.
    at::Tensor mean = {};      ///< Since the last take_scalars, [], without a graph;
    at::Tensor weighted = {};  ///< the same weighted, with it.
    at::Tensor map = {};
  };

  void add(const std::string& name, const Config& part, const LossSpecs& specs);
  const Loss& loss(std::string_view name) const { return losses_.at(name); }
  Loss& loss(std::string_view name);
  void record(Loss& loss) const;
  State save() const;
  void load(const State& state);

  const Context& context_;
  int64_t length_;
  OrderedMap<Loss> losses_;
};

/// Sets of losses by name, such as `basic+vgg`: what a training of a kind can have. A factory is
/// given the whole config.
using LossSpecRegistry = Registry<LossSpecs(const Config&, const Context&)>;
LossSpecRegistry& loss_specs();

/// The set that the config names at `path`, by default `fallback`. Throws UsageError with the known
/// names for another one.
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
