#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/components/registry.h"
#include "runtime/core/formats/state.h"
#include "runtime/train/optim/named_parameters.h"
#include "runtime/train/optim/schedule.h"

namespace stepop {

/// Changes parameters by their gradients, with PyTorch's fused kernels, which update many
/// parameters in one call. The kernels do not bump the parameters' versions; this class does, so
/// that backward through a graph from before a step throws PyTorch's error instead of giving wrong
/// gradients.
///
/// As in torch.optim, a parameter without a gradient is skipped and keeps its count of updates.
///
/// Config: `lr` and `weight_decay`, numbers or schedules, and parameter groups: `groups: [{match:
/// "bias$", weight_decay: 0}, {match: "^encoder", lr: 1e-4}]`. A parameter belongs to the first
/// group that matches its name; all other parameters use the values outside of `groups`. `match` is
/// a regular expression that may match any part of the name, or a list of expressions; see
/// `find_names`.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// From now on only the parameters that `own` marks, by position, are updated and have a state;
  /// other processes update the rest. Called before the first step, and before a state is loaded.
  void keep(const std::vector<char>& own);

  /// From now on the state is in the host's memory but for the time of an update. Only for an
  /// optimizer without averages that computes the loss once. Called before the first step, and
  /// before a state is loaded.
  void keep_state_on_cpu() { is_state_on_cpu_ = true; }

  /// Updates every parameter that has a gradient; the gradient stays. `global_step`: complete
  /// training steps, for schedules. `found_inf`, float32 [], comes from a check on a GPU: when it
  /// is 1, parameters and state stay as they are, and the host does not have to wait.
  ///
  /// `is_captured`: this step is captured in a graph of the device, and launched for others.
  void step(int64_t global_step, const at::Tensor& found_inf = {}, bool is_captured = false);

  /// Whether a step computes the loss several times: it is made by the second `step`.
  bool evaluates_again() const { return traits_.evaluates_again; }

  /// The same for such an optimizer: `loss` is that of the gradients; `evaluate` computes the loss
  /// and the gradients anew, with the weights of that moment. When it throws, weights and state are
  /// as before, and the exception is passed on.
  void step(int64_t global_step, double loss, const std::function<double()>& evaluate) {
    make_slots();
    step_again(lr(global_step), loss, evaluate);
  }

  /// Whether a graph of the device that holds the next step may be launched for all steps after it:
  /// its kernels read no number of the host that changes, and every parameter that is trained was
  /// updated before.
  bool is_repeatable() const;

  /// After a graph of the device has changed `parameters`: a backward through a graph from before
  /// it throws PyTorch's error.
  static void mark_changed(const std::vector<at::Tensor>& parameters);

  /// A learning rate or a weight decay that a schedule made infinite or NaN as a float32 at a step;
  /// nothing when all numbers are finite.
  struct BadRate {
    const char* name;  ///< `the learning rate`
    double value;
  };
  std::optional<BadRate> bad_rate(int64_t global_step) const;

  /// The learning rate at a step, outside of groups that have their own.
  double lr(int64_t global_step) const { return groups_.back().lr.at(global_step); }

  /// The learning rates of all groups at a step, in their order; the last is the rate outside of
  /// groups.
  std::vector<double> lrs(int64_t global_step) const;

  /// Resets all averages and counts to their values before the first update.
  void clear_state();

  /// Whether evaluations use other weights than those that are trained: `averages`.
  virtual bool has_averages() const { return false; }

  /// Each parameter with the weights that evaluations use, computed by this call. Empty without
  /// `has_averages`.
  virtual std::vector<std::pair<at::Tensor, at::Tensor>> averages() const { return {}; }

  /// The gradients that exist, for each group with at least one; of a sparse one its rows.
  std::vector<std::vector<at::Tensor>> gradients_by_group() const;

  /// The optimised parameters. A tensor with several names is listed once, under the first name.
  const NamedParameters& parameters() const { return parameters_; }

  /// The state of this process's parameters: `<parameter>.step` (float32, its count of updates) and
  /// the optimizer's tensors, such as `<parameter>.exp_avg`. They share memory with the optimizer:
  /// write or clone them before the next step.
  State state() const;

  /// Copies a state into this one; it may also have the state of other processes' parameters.
  /// Throws Error, and changes nothing, when a tensor is missing, left over, or of another shape or
  /// type.
  void load_state(const State& state);

 protected:
  /// The properties of an optimizer.
  struct Traits {
    double lr = 1e-3;                   ///< Default.
    double weight_decay = 0;            ///< Default.
    std::vector<std::string> slots;     ///< The names of the tensors kept for each parameter.
    bool first_update_differs = false;  ///< The optimizer reads `is_first`.
    bool reads_adapt = false;           ///< Groups may have `adapt`.
    /// Default of the key `adamw_lr`; without it there is no such key.
    std::optional<double> adamw_lr = std::nullopt;
    bool takes_sparse = false;  ///< `update` takes sparse gradients, which others cannot.
    /// `update` asks the host for its two numbers alone, and computes each element by itself.
    bool is_repeatable = false;
    bool evaluates_again = false;  ///< `step_again` is used in the place of `update`.
  };

  /// Parameters of one group, device and type, which one fused call updates. Entry i of every list
  /// belongs to parameter i.
  struct Bucket {
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> gradients;
    std::vector<at::Tensor> steps;  ///< float32 [], counts the current update.
    std::vector<char> is_first;     ///< Whether this is the parameter's first update.
    std::vector<char> is_own;       ///< Other parameters are not updated.
    /// By slot, in the order of the traits; the tensors are made by `make_slot` at their first use,
    /// never by an evaluation.
    mutable std::vector<std::vector<at::Tensor>> slots;
    /// By slot, once there are slots: whether the device's tensors are kept on the CPU.
    mutable std::vector<char> are_away;
    std::optional<at::Tensor> found_inf;  ///< For the kernel: 1 when it must do nothing.
    std::optional<bool> adapt;            ///< Of the group.
    double adamw_lr = 0;                  ///< Of the group, in this step.
  };

  /// Reads `groups`, `lr` and `weight_decay` of `config`. Throws UsageError for a bad value and for
  /// a group without parameters; Error for no parameters, a repeated name, a parameter that is not
  /// floating-point or was computed from others.
  Optimizer(const Config& config, NamedParameters parameters, Traits traits);

  /// One fused call for `bucket`, whose lists are never empty.
  virtual void update(const Bucket& bucket, double lr, double weight_decay) = 0;

  /// A step of an optimizer that computes the loss several times.
  virtual void step_again(double lr, double loss, const std::function<double()>& evaluate);

  /// Throws UsageError when `config` gives a weight decay to an optimizer that has none.
  static void refuse_weight_decay(const Config& config, const char* name);

  /// A slot's tensor for parameter i before its first update, zeros; undefined when this parameter
  /// has no such slot.
  virtual at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const;

  /// All buckets of all groups.
  std::vector<const Bucket*> buckets() const;

  /// Copies `value` into `tensor`, a parameter or a slot of `bucket`, unless `found_inf` is 1: for
  /// formulas without a kernel that has this flag. The host does not wait.
  static void assign(const Bucket& bucket, const at::Tensor& tensor, const at::Tensor& value);

 private:
  struct Group {
    Scheduled lr;
    Scheduled weight_decay;
    std::optional<Scheduled> adamw_lr;
    std::optional<bool> adapt;
    std::vector<Bucket> buckets;
    std::vector<std::vector<size_t>> members;  ///< Positions in `parameters_`, by bucket.
  };

  static std::vector<Config> places_of_groups(const Config& config);
  std::vector<size_t> matching_groups(const std::vector<Config>& places,
                                      const NamedParameters& all) const;
  void read_groups(const Config& config, const NamedParameters& all);
  void add_parameter(Group& group, size_t position);
  void make_slots() const;
  void step_bucket(Bucket& bucket, double lr, double weight_decay, bool is_captured);
  static Bucket in_pieces(const Bucket& bucket);
  void update_from_cpu(const Bucket& bucket, double lr, double weight_decay);
  bool count_update(Bucket& active) const;
  template <class Visit>
  void visit_state(const Visit& visit) const;

  NamedParameters parameters_;
  Traits traits_;
  std::vector<Group> groups_;  ///< The last group has the remaining parameters.
  mutable bool has_slots_ = false;
  bool is_state_on_cpu_ = false;
  Bucket partial_;  ///< Scratch for a bucket in which some gradients are missing.
};

/// The numbers of a gradient, which a change of them changes: of a sparse one, which must be
/// coalesced, its rows.
at::Tensor numbers_of(const at::Tensor& gradient);

using OptimizerRegistry = Registry<std::unique_ptr<Optimizer>(const Config&, NamedParameters)>;
OptimizerRegistry& optimizers();

/// What every optimizer has; the `Params` of one begin with it, and change the defaults.
struct OptimizerParams {
  double lr = 1e-3;
  double weight_decay = 0;
};

/// What Adam and its kin have.
struct AdamParams : OptimizerParams {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;

  void declare(Parameters& p);
};

/// The parameters of every optimizer around its `own` ones.
std::vector<Parameter> optimizer_parameters(const OptimizerParams& usual,
                                            std::vector<Parameter> own);

/// The documentation of an optimizer; one with `Params` has its parameters declared there.
template <class T>
About about_optimizer(About given = {}) {
  if constexpr (HasParams<T>) {
    given.parameters =
        optimizer_parameters(typename T::Params(), parameters_of<typename T::Params>());
  }
  return given;
}

/// The parameters of every optimizer in a config, `lr` and `weight_decay` with these defaults,
/// followed by the optimizer's `own` parameters; for `About`.
std::vector<Parameter> optimizer_parameters(std::string lr, std::string weight_decay,
                                            std::vector<Parameter> own);

/// The two decay rates at `path`. Throws UsageError unless they are two numbers in [0, 1).
std::pair<double, double> read_betas(const Config& config, double beta1, double beta2,
                                     std::string_view path = "betas");

/// The number at `path`. Throws UsageError when it is below 0.
double read_non_negative(const Config& config, std::string_view path, double fallback);

}  // namespace stepop

/// Registers a class with a constructor from its `Params`, which begin with OptimizerParams,
/// `const Config&`, its part of the config, and `NamedParameters`.
#define STEPOP_REGISTER_OPTIMIZER(Class, ...)                                    \
  STEPOP_REGISTER(                                                               \
      ::stepop::optimizers(), #Class,                                            \
      [](const ::stepop::Config& params, ::stepop::NamedParameters parameters) { \
        return ::stepop::make_component<Class>(params, std::move(parameters));   \
      },                                                                         \
      ::stepop::about_optimizer<Class>(__VA_ARGS__))
