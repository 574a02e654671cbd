#include "iterators/extensible/step/optimizer_of_step.h"

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "iterators/extensible/step/learning_rates.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/name_pattern.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/when/duration.h"

namespace stepop::extensible {
namespace {

namespace nn = torch::nn;

template <class... Modules>
bool is_one_of(const nn::Module& module) {
  return ((module.as<Modules>() != nullptr) || ...);
}

bool is_norm_or_embedding(const nn::Module& module) {
  return is_one_of<nn::BatchNorm1d, nn::BatchNorm2d, nn::BatchNorm3d, nn::InstanceNorm1d,
                   nn::InstanceNorm2d, nn::InstanceNorm3d, nn::LayerNorm, nn::GroupNorm,
                   nn::Embedding, nn::EmbeddingBag>(module);
}

/// The names of biases, and of the parameters of norms and embeddings.
std::set<std::string> names_of_no_weights(const nn::Module& network,
                                          const NamedParameters& parameters) {
  std::set<std::string> names;
  for (const auto& item : network.named_modules()) {
    if (!is_norm_or_embedding(*item.value())) continue;
    for (const auto& own : item.value()->named_parameters(/*recurse=*/false)) {
      names.insert(item.key().empty() ? own.key() : item.key() + "." + own.key());
    }
  }
  for (const auto& [name, tensor] : parameters) {
    if (name == "bias" || name.ends_with(".bias")) names.insert(name);
  }
  return names;
}

/// Patterns that match exactly these names, as few patterns as possible.
Value::List patterns_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = NamePattern::kMostBytes - 100;
  Value::List patterns;
  std::string alternatives;
  const auto end = [&] {
    if (!alternatives.empty()) patterns.emplace_back("^(?:" + alternatives + ")$");
    alternatives.clear();
  };
  for (const auto& name : names) {
    std::string escaped;
    for (const char c : name) {
      const bool is_word =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      escaped += is_word ? std::string(1, c) : std::string("\\") + c;
    }
    if (alternatives.size() + escaped.size() > kMost) end();
    alternatives += (alternatives.empty() ? "" : "|") + escaped;
  }
  end();
  return patterns;
}

/// A stepop optimizer for a DL-Art-School name, with DL-Art-School's defaults.
struct Kind {
  const char* class_name;
  double weight_decay;
  bool has_betas;
  bool splits;  ///< Biases, norms and embeddings are a separate group without decay.
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all = {{"adamw", {"AdamW", 0, true, true}},
                                                  {"adam", {"Adam", 0, true, true}},
                                                  {"sgd", {"SGD", 0, false, false}},
                                                  {"lars", {"LARS", 0, false, false}},
                                                  {"lamb", {"LAMB", 0.01, true, true}}};
  return all;
}

/// DL-Art-School's optimizers that do not exist here, and why.
const std::map<std::string, const char*>& refused_kinds() {
  static const std::map<std::string, const char*> all = {
      {"adamw_zero",
       "spreads its averages over several processes: take adamw, and distributed: "
       "{shard_optimizer: true} at the top of the config"},
      {"mu_adamw",
       "needs the Python package mup, which measures how wide each layer is: take adamw, with "
       "param_groups for layers that need a rate of their own"}};
  return all;
}

const Kind& kind_of(const Config& step, const std::string& name) {
  const auto found = kinds().find(name);
  if (found != kinds().end()) return found->second;
  if (const auto refused = refused_kinds().find(name); refused != refused_kinds().end()) {
    throw step.error("optimizer", fmt::format("{} {}", name, refused->second));
  }
  std::vector<std::string> names;
  std::string known;
  for (const auto& [each, kind] : kinds()) {
    names.push_back(each);
    known += (known.empty() ? "" : ", ") + each;
  }
  const auto near = nearest_names(name, names, 1);
  throw step.error("optimizer",
                   fmt::format("unknown optimizer \"{}\"; there are: {}{}", name, known,
                               near.empty() ? "" : "; did you mean " + near[0] + "?"));
}

/// Parameters that share a learning rate: the `default` group or a group of `param_groups`.
struct RateGroup {
  std::string name;
  Value lr;
  std::vector<NamePattern> patterns;  ///< Empty: parameters that no other group has.
  std::vector<std::string> weights;
  std::vector<std::string> others;  ///< Biases, norms and embeddings.
};

std::vector<RateGroup> read_rate_groups(const Config& params) {
  params.get<Value>("lr");  // throws if missing
  std::vector<RateGroup> groups = {{"default", *params.peek("lr"), {}, {}, {}}};
  if (!params.has("param_groups")) return groups;
  for (const auto& name : params.at("param_groups").keys()) {
    const Config group = params.at("param_groups/" + name);
    if (!group.has("match")) {
      throw group.error("match", fmt::format("missing: a regular expression for the names of the "
                                             "group's parameters, such as \"^{}\\.\"; a network "
                                             "here does not mark its parameters",
                                             name));
    }
    group.get<Value>("lr");
    groups.push_back({name, *group.peek("lr"), read_patterns(group, "match"), {}, {}});
  }
  return groups;
}

/// Puts each parameter into the first group that matches its name, or else into the default group.
void fill(std::vector<RateGroup>& groups, const NamedParameters& parameters,
          const std::set<std::string>& no_weights, const Config& params) {
  for (const auto& [name, tensor] : parameters) {
    const auto found = std::find_if(groups.begin() + 1, groups.end(), [&](const auto& group) {
      return std::ranges::any_of(group.patterns,
                                 [&](const auto& pattern) { return pattern.is_in(name); });
    });
    RateGroup& group = found == groups.end() ? groups.front() : *found;
    (no_weights.contains(name) ? group.others : group.weights).push_back(name);
  }
  for (const auto& group : groups) {
    if (group.patterns.empty() || !group.weights.empty() || !group.others.empty()) continue;
    throw params.error("param_groups/" + group.name + "/match",
                       fmt::format("matches no parameter that an earlier group leaves; the "
                                   "parameters are: {}",
                                   list_names(parameters)));
  }
}

/// The options that all groups of an optimizer share.
Value::Map options_of(const Config& step, const Kind& kind) {
  const Config params = step.at("optimizer_params");
  Value::Map made;
  made.set("class", Value(kind.class_name));
  made.set("weight_decay", params.has("weight_decay") ? params.get<Value>("weight_decay")
                                                      : Value(kind.weight_decay));
  if (kind.has_betas) {
    const double beta1 = params.get("beta1", 0.9);
    const double beta2 = params.get("beta2", 0.999);
    made.set("betas", Value(Value::List{Value(beta1), Value(beta2)}));
  } else {
    made.set("momentum", params.has("momentum") ? params.get<Value>("momentum") : Value(0.0));
  }
  const std::string_view name = kind.class_name;
  if (name == "LARS") made.set("trust_coefficient", params.get<Value>("lars_coefficient"));
  if (name == "LAMB") {  // as in DL-Art-School: no bias correction, weight norms up to 10
    made.set("bias_correction", Value(false));
    made.set("max_weight_norm", Value(10.0));
  }
  if (step.has("clip_grad_eps")) {
    made.set("clip_norm", step.get<Value>("clip_grad_eps"));
    made.set("clip_by", Value(step.get("clip_by", "group")));
  }
  return made;
}

/// The optimizer's part of a config in the runtime's form.
Value::Map optimizer_of(const Context& context, const Config& step, const std::string& network,
                        const NamedParameters& parameters) {
  const Config params = step.at("optimizer_params");
  const LearningRates rates(context.config.at("train"));
  const Kind& kind = kind_of(step, step.get("optimizer", "adamw"));
  std::vector<RateGroup> groups = read_rate_groups(params);
  const auto no_weights = kind.splits
                              ? names_of_no_weights(*context.networks.get(network), parameters)
                              : std::set<std::string>();
  fill(groups, parameters, no_weights, params);
  std::vector<std::string> names;
  for (const auto& group : groups) names.push_back(group.name);
  const bool has_one = groups.size() == 1;
  if (kind.splits && has_one) names = {"weights", "biases, norms and embeddings"};
  const auto starts = rates.starts(names);

  const Value rate = rates.of(groups.front().lr, starts.front());
  Value::Map made = options_of(step, kind);
  made.set("lr", rate);
  Value::List of_names;
  const auto add = [&](const std::vector<std::string>& of_group, const Value& lr,
                       bool are_weights) {
    if (of_group.empty()) return;
    Value::Map group{{"match", Value(patterns_of(of_group))}};
    if (lr != rate) group.set("lr", lr);
    if (!are_weights) group.set("weight_decay", Value(0.0));
    if (!are_weights && std::string_view(kind.class_name) == "LAMB") {
      group.set("adapt", Value(false));
    }
    of_names.emplace_back(std::move(group));
  };
  for (size_t i = 0; i < groups.size(); ++i) {
    const RateGroup& group = groups[i];
    if (i > 0) add(group.weights, rates.of(group.lr, starts[i]), true);
    add(group.others, rates.of(group.lr, has_one ? starts.back() : starts[i]), false);
  }
  if (!of_names.empty()) made.set("groups", Value(std::move(of_names)));
  if (context.config.get("keep_optimizer_states_on_cpu", false)) {
    made.set("state_on_cpu", Value(true));
  }
  if (auto clears_at = rates.clears_at(); !clears_at.empty()) {
    made.set("clear_state_at", Value(std::move(clears_at)));
  }
  return made;
}

}  // namespace

Gate gate_of_optimizer(const Config& params) {
  const Value* before = params.peek("before");
  if (before == nullptr || *before != Value(int64_t{-1})) return Gate(params, false);
  params.get<int64_t>("before");
  Gate gate;
  gate.after = read_length_or(params, "after", 0, 0);
  return gate;
}

Update& update_of_step(const Context& context, const std::string& step,
                       const std::string& network) {
  const Config config = context.config.at("steps/" + step);
  if (config.get("check_grads_for_nan", false) && context.on_nan == OnNan::kIgnore) {
    throw config.error("check_grads_for_nan",
                       "true, and on_nan is ignore, which checks nothing: on_nan: skip leaves such "
                       "updates out, stop ends the training");
  }
  NamedParameters parameters = context.networks.parameters({network});
  if (parameters.empty()) {
    throw config.error("training", fmt::format("the network \"{}\" has no parameter that requires "
                                               "a gradient",
                                               network));
  }
  Value::Map optimizer = optimizer_of(context, config, network, parameters);
  // Nested at the config's own place, which messages name.
  Value::Map of_step{{"optimizer_params", Value(std::move(optimizer))}};
  Value::Map steps{{step, Value(std::move(of_step))}};
  const Config made(Value(Value::Map{{"steps", Value(std::move(steps))}}));
  return context.update_from("steps/" + step, made.at("steps/" + step + "/optimizer_params"),
                             std::move(parameters));
}

}  // namespace stepop::extensible
