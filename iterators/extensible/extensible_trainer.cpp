#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iterators/extensible/batch_rules.h"
#include "iterators/extensible/foreign_keys.h"
#include "iterators/extensible/runner.h"
#include "iterators/extensible/step/gate.h"
#include "iterators/extensible/step/learning_rates.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/when/duration.h"

namespace stepop::extensible {
namespace {

/// A training that the config describes: `steps` of injectors, which compute values from other
/// values, and of losses, like DL-Art-School's ExtensibleTrainer. README.md lists all keys.
class ExtensibleTrainer : public Iterator {
 public:
  /// Its parts read these by themselves.
  struct Params {
    static void declare(Parameters& p) {
      p.describe(
          {"steps", "", "name -> {training, injectors, losses, optimizer, ...}", false, {"map"}});
      p.describe(
          {"train", "none", "learning rates of all steps, as in DL-Art-School", false, {"map"}});
      p.describe({"logger",
                  "none",
                  "{visuals: [state, ...], visual_debug_rate: 500}: pictures",
                  false,
                  {"map"}});
      p.describe({"start_step",
                  "-1",
                  "the iteration before the first, where gates and schedules do not begin anew",
                  false,
                  {"int"}});
      p.describe({"keep_optimizer_states_on_cpu",
                  "false",
                  "of all steps: the same as `state_on_cpu` of an optimizer",
                  false,
                  {"bool"}});
      p.describe({"eval", "none", "{output_state: [state, ...], evaluators: ...}", false, {"map"}});
    }
  };

  explicit ExtensibleTrainer(const Context& context)
      : Iterator(context),
        visuals_(names_at("logger/visuals")),
        outputs_(names_at("eval/output_state")),
        rules_(context.config.at("train")),
        first_(first_iteration(context.config)),
        are_visuals_in_0_1_(config().has("logger/reverse_n1_to_1") &&
                            !config().get<bool>("logger/reverse_n1_to_1")) {
    take_foreign_keys(config());
    const LearningRates checked(config().at("train"));  // also if no step trains
    read_networks();
    std::vector<std::string> kept = visuals_;
    kept.insert(kept.end(), outputs_.begin(), outputs_.end());
    runner_ = std::make_unique<Runner>(context, rules_.most_parts(), kept);
    check_all_are_trained();
    set_visuals_op();
  }

  /// The evaluators that have a metric of the whole split, of any split.
  OrderedMap<std::string> eval_callbacks() const override {
    OrderedMap<std::string> callbacks;
    for (const auto& part : runner_->evaluators()) {
      if (part.is_over_split && part.dataset.empty()) callbacks.set(part.name, kEvaluatorCallback);
    }
    return callbacks;
  }

  std::string plan(const Batch& batch) override { return runner_->table(rules_.cut(batch)); }

  StepOps step_op(const Batch& loaded) override {
    const Batch batch = rules_.cut(loaded);
    runner_->check(batch);
    const bool is_of_training = get_split() == "train" && at::GradMode::is_enabled();
    // Other batches may pass before a log shows this one.
    const auto seen = std::make_shared<std::optional<Seen>>();
    StepOps ops;
    ops.train_op = [=, this] {
      for (const auto& network : frozen_) network->eval();
      runner_->set_parts(rules_.parts(iteration()));
      Scalars losses = runner_->train(rules_.sorted(batch), iteration());
      *seen = Seen{runner_->other_logs(), pictures()};  // the runtime logs the losses
      return losses;
    };
    const auto look = [=, this]() -> const Seen& {
      if (*seen) return **seen;
      Scalars losses;
      if (is_of_training) {  // shown as in training, even if no train op was due
        for (const auto& network : frozen_) network->eval();
        losses = runner_->look(rules_.sorted(batch), iteration());
      } else {
        losses = runner_->evaluate(batch, iteration());
      }
      Logs logs = runner_->other_logs();
      logs.scalars = std::move(losses);
      return seen->emplace(Seen{std::move(logs), pictures()});
    };
    ops.log_op = [=, this] {
      Logs logs = look().logs;
      if (is_of_training) runner_->networks().add_debug_values(iteration(), logs);
      if (!has_visuals_op_) add_visuals(look(), logs);
      return logs;
    };
    ops.log_ops.set("visuals_op", [=, this] {
      Logs logs;
      add_visuals(look(), logs);
      return logs;
    });
    ops.eval_op = [=, this] {
      runner_->evaluate(batch, iteration());
      EvalOutputs made;
      for (const auto& name : outputs_) {
        const at::Tensor value = joined(runner_->kept_parts(name));
        if (!value.defined()) {
          throw Error(
              fmt::format("eval/output_state: nothing makes \"{}\" in an evaluation at "
                          "iteration {}",
                          name, iteration()));
        }
        made.outputs.set(name, value);
      }
      runner_->measure(iteration(), made);
      return made;
    };
    return ops;
  }

 private:
  /// The losses and pictures of one batch for a log.
  struct Seen {
    Logs logs;  ///< Of the steps; without the losses of a train op.
    std::vector<std::vector<at::Tensor>> pictures;  ///< For each of `visuals_`, in parts.
  };

  /// The number of the current iteration, by which gates go.
  int64_t iteration() const { return first_ + global_step(); }

  /// One name or a list of names; empty if the key is missing.
  std::vector<std::string> names_at(const char* key) const {
    if (!config().has(key)) return {};
    if (config().peek(key)->is_text()) return {config().get<std::string>(key)};
    return config().get<std::vector<std::string>>(key);
  }

  void read_networks() {
    if (!config().has("networks")) {
      throw config().error("networks",
                           "missing: a map of names and networks, such as {generator: {type: "
                           "generator, which_model: RRDBNet, nf: 64}}");
    }
    for (const auto& name : config().at("networks").keys()) {
      const Config network = config().at("networks/" + name);
      const std::string type = network.get("type", "generator");
      if (type != "generator" && type != "discriminator") {
        throw network.error("type",
                            fmt::format("expected generator or discriminator, found \"{}\"", type));
      }
      read_length_or(network, "after", 0, 0);
      if (network.get("trainable", true)) continue;
      const auto& module = context().networks.get(name);
      for (const auto& parameter : module->parameters()) parameter.set_requires_grad(false);
      frozen_.push_back(module);
    }
  }

  /// Throws UsageError for a network that no step trains, unless it is marked as not trainable.
  void check_all_are_trained() const {
    for (const auto& name : context().networks.names()) {
      const auto parameters = context().networks.get(name)->parameters();
      const bool is_trainable =
          std::any_of(parameters.begin(), parameters.end(),
                      [](const at::Tensor& parameter) { return parameter.requires_grad(); });
      const bool is_trained = std::any_of(
          runner_->steps().begin(), runner_->steps().end(),
          [&](const Step& step) { return step.network == name && step.update != nullptr; });
      if (!is_trainable || is_trained) continue;
      throw config().error("networks/" + name,
                           "no step trains it; trainable: false says that it is meant so");
    }
  }

  /// `visual_debug_rate: 5` logs visuals in iterations 0, 5, 10, ..., so after steps 1, 6, 11,
  /// where the first iteration is 0.
  void set_visuals_op() {
    const bool has_rate = config().has("logger/visual_debug_rate");
    if (!has_rate) return;
    if (visuals_.empty()) {
      throw config().error("logger/visual_debug_rate",
                           "there are no visuals: name keys of the state, visuals: [gen, hq]");
    }
    has_visuals_op_ = true;
    const int64_t rate = config().get_at_least("logger/visual_debug_rate", 1);
    Value::List ops{Value("train/log_op")};
    if (config().has("datasets/validation")) ops.emplace_back("validation/log_op");
    Value::Map when{{"every", Value(rate)}, {"from", Value(1 + (rate - first_ % rate) % rate)}};
    ops.emplace_back(
        Value::Map{{"op", Value("train/visuals_op")}, {"when", Value(std::move(when))}});
    config().set_default("log_ops", Value(std::move(ops)));
  }

  /// The values of the keys in `visuals_` for the batch that ran through the steps last.
  std::vector<std::vector<at::Tensor>> pictures() const {
    std::vector<std::vector<at::Tensor>> pictures;
    for (const auto& name : visuals_) pictures.push_back(runner_->kept_parts(name));
    return pictures;
  }

  void add_visuals(const Seen& seen, Logs& logs) const {
    for (size_t i = 0; i < visuals_.size(); ++i) {
      const std::string& name = visuals_[i];
      at::Tensor picture = joined(seen.pictures[i]);
      if (!picture.defined()) continue;  // its injector is off now
      if (picture.dim() != 4) {
        throw Error(
            fmt::format("logger/visuals: \"{}\" is not a batch of pictures [B, C, H, W]: {}", name,
                        describe_tensor(picture)));
      }
      picture = picture.detach();
      if (picture.size(1) > 3) picture = picture.narrow(1, 0, 3);
      if (picture.size(1) == 2) picture = picture.narrow(1, 0, 1);
      logs.images.set(name, are_visuals_in_0_1_ ? picture.mul(2).sub(1) : picture);
    }
    if (get_split() == "train") runner_->networks().add_pictures(iteration(), logs);
  }

  std::vector<std::string> visuals_;
  std::vector<std::string> outputs_;
  BatchRules rules_;
  int64_t first_;  ///< The number of the first iteration.
  bool are_visuals_in_0_1_;
  bool has_visuals_op_ = false;
  std::vector<std::shared_ptr<torch::nn::Module>> frozen_;  ///< The networks that never train.
  std::unique_ptr<Runner> runner_;
};

/// Registers DL-Art-School's keys for the class of a network.
[[maybe_unused]] const bool kNamesClasses = [] {
  for (const char* key : {"which_model", "which_model_G", "which_model_D"}) {
    other_class_keys().emplace_back(key);
  }
  return true;
}();

STEPOP_REGISTER_ITERATOR(ExtensibleTrainer,
                         {"A training that its config describes: steps of injectors and losses."});

}  // namespace
}  // namespace stepop::extensible
