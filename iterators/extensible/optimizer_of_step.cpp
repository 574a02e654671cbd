#include "iterators/extensible/optimizer_of_step.h"

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/name_pattern.h"
#include "runtime/base/nearest.h"

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

/// The names of the parameters that do not decay.
std::vector<std::string> names_without_decay(const nn::Module& network,
                                             const NamedParameters& parameters) {
  std::set<std::string> of_norms;
  for (const auto& item : network.named_modules()) {
    if (!is_norm_or_embedding(*item.value())) continue;
    for (const auto& own : item.value()->named_parameters(/*recurse=*/false)) {
      of_norms.insert(item.key().empty() ? own.key() : item.key() + "." + own.key());
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    if (name == "bias" || name.ends_with(".bias") || of_norms.contains(name)) names.push_back(name);
  }
  return names;
}

/// Patterns that match these names and no others, as few as can be.
std::vector<std::string> patterns_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = NamePattern::kMostBytes - 100;
  std::vector<std::string> patterns;
  std::string alternatives;
  const auto end = [&] {
    if (!alternatives.empty()) patterns.push_back("^(?:" + alternatives + ")$");
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

/// DL-Art-School's names for ours, and the defaults that it has.
struct Kind {
  const char* class_name;
  double weight_decay;
  bool has_betas;
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all = {{"adamw", {"AdamW", 0, true}},
                                                  {"adam", {"Adam", 0, true}},
                                                  {"sgd", {"SGD", 0, false}},
                                                  {"lamb", {"LAMB", 0.01, true}}};
  return all;
}

const Kind& kind_of(const Config& step, const std::string& name) {
  const auto found = kinds().find(name);
  if (found != kinds().end()) return found->second;
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

Value with_origin_of(Value value, const Value& other) {
  value.set_origin(other.origin());
  return value;
}

/// The learning rate `lr`, by the scheme of `train`.
Value scheduled(const Config& train, const Value& lr) {
  if (lr.is_map() || !train.has("default_lr_scheme")) return lr;
  const auto scheme = train.get<std::string>("default_lr_scheme");
  if (scheme != "MultiStepLR") {
    throw train.error("default_lr_scheme",
                      fmt::format("expected MultiStepLR, found \"{}\"; any other schedule is "
                                  "written as the lr of optimizer_params, such as {{class: cosine, "
                                  "from: 1e-3, steps: 10000}}",
                                  scheme));
  }
  // A milestone takes effect in the iteration before the one of its number, as there.
  Value::List at;
  for (const int64_t milestone : train.get<std::vector<int64_t>>("gen_lr_steps")) {
    if (milestone < 1) throw train.error("gen_lr_steps", "expected milestones of 1 or more");
    at.emplace_back(milestone - 1);
  }
  const double gamma = train.get<double>("lr_gamma");
  if (at.empty()) return lr;
  Value::Map schedule;
  schedule.set("class", Value("step"));
  schedule.set("from", lr);
  schedule.set("factor", with_origin_of(Value(gamma), *train.peek("lr_gamma")));
  schedule.set("at", with_origin_of(Value(std::move(at)), *train.peek("gen_lr_steps")));
  return with_origin_of(Value(std::move(schedule)), lr);
}

Value::Map optimizer_of(const Context& context, const Config& step) {
  const Config params = step.at("optimizer_params");
  const Kind& kind = kind_of(step, step.get("optimizer", "adamw"));
  Value::Map made;
  made.set("class", Value(kind.class_name));
  params.get<Value>("lr");  // throws when it is missing
  made.set("lr", scheduled(context.config.at("train"), *params.peek("lr")));
  made.set("weight_decay", params.has("weight_decay") ? params.get<Value>("weight_decay")
                                                      : Value(kind.weight_decay));
  const double beta1 = kind.has_betas ? params.get("beta1", 0.9) : 0;
  const double beta2 = kind.has_betas ? params.get("beta2", 0.999) : 0;
  if (kind.has_betas) made.set("betas", Value(Value::List{Value(beta1), Value(beta2)}));
  if (!kind.has_betas && params.has("momentum")) {
    made.set("momentum", params.get<Value>("momentum"));
  }
  if (step.has("clip_grad_eps")) {
    made.set("clip_norm", step.get<Value>("clip_grad_eps"));
    made.set("clip_by", Value(step.get("clip_by", "group")));
  }
  return made;
}

}  // namespace

Gate gate_of_optimizer(const Config& params) {
  const Value* before = params.peek("before");
  if (before == nullptr || *before != Value(int64_t{-1})) return Gate(params, false);
  params.get<int64_t>("before");
  Gate gate;
  gate.after = params.get_at_least("after", 0, 0);
  return gate;
}

Update& update_of_step(const Context& context, const std::string& step,
                       const std::string& network) {
  const Config config = context.config.at("steps/" + step);
  config.get("check_grads_for_nan", false);  // on_nan always does
  NamedParameters parameters = context.networks.parameters({network});
  if (parameters.empty()) {
    throw config.error("training", fmt::format("the network \"{}\" has no parameter that requires "
                                               "a gradient",
                                               network));
  }
  Value::Map optimizer = optimizer_of(context, config);
  const auto without_decay = names_without_decay(*context.networks.get(network), parameters);
  if (!without_decay.empty() && without_decay.size() < parameters.size()) {
    Value::List groups;
    for (const auto& pattern : patterns_of(without_decay)) {
      groups.emplace_back(Value::Map{{"match", Value(pattern)}, {"weight_decay", Value(0.0)}});
    }
    optimizer.set("groups", Value(std::move(groups)));
  } else if (!without_decay.empty()) {
    optimizer.set("weight_decay", Value(0.0));
  }
  // In the place that the config has for it, which messages name.
  Value::Map of_step{{"optimizer_params", Value(std::move(optimizer))}};
  Value::Map steps{{step, Value(std::move(of_step))}};
  const Config made(Value(Value::Map{{"steps", Value(std::move(steps))}}));
  return context.update_from("steps/" + step, made.at("steps/" + step + "/optimizer_params"),
                             std::move(parameters));
}

}  // namespace stepop::extensible
