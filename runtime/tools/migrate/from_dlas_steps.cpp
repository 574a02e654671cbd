#include "runtime/tools/migrate/from_dlas_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tools/migrate/from_dlas_left_out.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

/// Keys that were once in a step itself, where nothing reads them any more.
constexpr std::array<std::string_view, 4> kLegacy = {"lr", "weight_decay", "beta1", "beta2"};

/// Keys of every part of a kind, besides the keys of its registration.
constexpr std::array<std::string_view, 10> kOfNetwork = {
    "type",      "class", "which_model", "which_model_G", "which_model_D",
    "trainable", "after", "args",        "kwargs",        "output_mode"};
constexpr std::array<std::string_view, 10> kOfInjector = {
    "type", "in", "out", "train", "eval", "no_grad", "no_accum", "after", "before", "every"};
constexpr std::array<std::string_view, 8> kOfLoss = {"type",  "weight", "after", "before",
                                                     "every", "train",  "eval",  "which_model_F"};

constexpr std::array<std::string_view, 15> kOfStep = {
    "type",     "training",      "injectors",          "losses",  "optimizer", "optimizer_params",
    "requires", "step_outputs",  "loss_log_buffer",    "clip_by", "after",     "before",
    "every",    "clip_grad_eps", "check_grads_for_nan"};

class StepsTranslation {
 public:
  StepsTranslation(const Value& dlas, TranslatedConfig& result) : dlas_(dlas), result_(result) {}

  void run() {
    take_networks(*dlas_.find("networks"));
    take_steps(*dlas_.find("steps"));
    note_untrained();
  }

 private:
  void take_networks(const Value& networks) {
    Value copy = networks;
    for (auto& [name, network] : copy.as_map()) {
      if (!network.is_map()) continue;
      names_.insert(name);
      take_network("networks/" + name, network.as_map());
    }
    set("networks", std::move(copy));
  }

  void take_network(const std::string& place, Value::Map& network) {
    for (const char* key : {"which_model", "which_model_G", "which_model_D"}) {
      const Value* model = network.find(key);
      if (model == nullptr) continue;
      if (!model->is_text() || !is_registered(models(), model->as_text())) {
        return note(place + "/" + key,
                    fmt::format("{} is not here: `stepop list model` shows what there is, models/ "
                                "says how to write one",
                                model->describe()));
      }
      const std::string kind = model->as_text();  // take_byol moves what `model` points to
      if (kind == "byol") take_byol(place, network);
      take_weights(place, "pretrain_rrdb", "RRDB.", network);
      if (kind == "rrdb_latent_wrapper") {
        take_weights(place, "pretrain_path", "wrappedRRDB.", network);
      }
      return leave_unread(place, network, kOfNetwork, find_component(models().role(), kind));
    }
  }

  /// Weights of a part of the network, whose names begin with `prefix` here.
  void take_weights(const std::string& place, const char* key, const char* prefix,
                    Value::Map& network) {
    const Value* path = network.find(key);
    if (path == nullptr) return;
    if (path->is_text()) {
      Value::Map names;
      for (const std::string part : {"conv_", "body."}) names.set(part, Value(prefix + part));
      Value::Map entry;
      entry.set("path", *path);
      entry.set("network", Value(place.substr(place.rfind('/') + 1)));
      entry.set("map", Value(std::move(names)));
      entry.set("strict", Value(false));
      set("init_from", Value(Value::List{Value(std::move(entry))}));
      note(fmt::format("{}/{}", place, key),
           "becomes init_from; its file is relative to this one now");
    }
    network.erase(key);
  }

  void take_byol(const std::string& place, Value::Map& network) {
    const Value* layer = network.find("hidden_layer");
    if (layer != nullptr && !layer->is_text() && *layer != Value(int64_t{-1})) {
      note(place + "/hidden_layer",
           fmt::format("{} is left out: a layer is named by its path in the network, avgpool, and "
                       "without it the features are what subnet returns",
                       layer->describe()));
      network.erase("hidden_layer");
    }
    const Value* augments = network.find("aug_enable");
    if (augments == nullptr || *augments != Value(false)) {
      note(place + "/aug_enable",
           "there, the network changes the views once more, unless this is "
           "false: here the dataset alone does");
    }
    network.erase("aug_enable");
    Value* subnet = network.find("subnet");
    if (subnet != nullptr && subnet->is_map()) take_subnet(place + "/subnet", subnet->as_map());
  }

  /// A network within another one is named by `class`.
  void take_subnet(const std::string& place, Value::Map& subnet) {
    take_network(place, subnet);
    for (const char* key : {"which_model", "which_model_G", "which_model_D"}) {
      const Value* model = subnet.find(key);
      if (model == nullptr) continue;
      subnet.set("class", Value(*model));
      return subnet.erase(key);
    }
  }

  void take_steps(const Value& steps) {
    Value copy = steps;
    for (auto& [name, step] : copy.as_map()) {
      if (step.is_map()) take_step("steps/" + name, step.as_map());
    }
    take_eval_injectors(copy);
    set("steps", std::move(copy));
  }

  /// Injectors of evaluations, which replace the steps there, become ones of the last step.
  void take_eval_injectors(Value& steps) {
    const Value* injectors = dlas_.find("eval/injectors");
    if (injectors == nullptr || !injectors->is_map() || steps.as_map().empty()) return;
    const auto last = std::prev(steps.as_map().end());
    for (const auto& [name, injector] : injectors->as_map()) {
      Value copy = injector;
      if (!copy.is_map() || !last->second.is_map()) continue;
      copy.as_map().set("eval", Value(true));
      Value own(Value::Map{});
      if (const Value* there = find_in_map(last->second, "injectors")) own = *there;
      take_part("eval/injectors/" + name, copy, "injector", kOfInjector);
      own.as_map().set(own.as_map().contains(name) ? name + "_eval" : name, std::move(copy));
      last->second.as_map().set("injectors", std::move(own));
      note("eval/injectors/" + name,
           fmt::format("is in steps/{}, with eval: true, beside what is there: an evaluation goes "
                       "through the steps",
                       last->first));
    }
  }

  /// Evaluations compute no losses there, unless `eval/pure` is true; a discriminator may not even
  /// take the pictures of an evaluation.
  void keep_from_evaluations(const std::string& place, Value& loss) {
    const Value* type = find_in_map(loss, "type");
    const bool is_gan =
        type != nullptr && (*type == Value("generator_gan") || *type == Value("discriminator_gan"));
    const Value* pure = dlas_.find("eval/pure");
    if (!is_gan || dlas_.find("datasets/val") == nullptr ||
        (pure != nullptr && *pure == Value(true))) {
      return;
    }
    loss.as_map().set("train", Value(true));
    note(place, "gets train: true: evaluations have no losses there, unless eval/pure is true");
  }

  void take_step(const std::string& place, Value::Map& step) {
    for (const char* key : {"generator", "generator_outputs"}) {
      if (step.contains(key)) note(place + "/" + key, "nothing reads it there");
      step.erase(key);
    }
    take_optimizer(place, step);
    std::vector<std::string> unread;
    for (const auto& [key, value] : step) {
      if (std::ranges::find(kOfStep, key) == kOfStep.end()) unread.push_back(key);
    }
    for (const auto& key : unread) {
      note(place + "/" + key, "left out: nothing reads it there");
      step.erase(key);
    }
    for (const char* kind : {"injectors", "losses"}) {
      Value* components = step.find(kind);
      if (components == nullptr || !components->is_map()) continue;
      for (auto& [name, component] : components->as_map()) {
        const std::string of_part = fmt::format("{}/{}/{}", place, kind, name);
        if (kind == std::string_view("injectors")) {
          take_part(of_part, component, "injector", kOfInjector);
          continue;
        }
        take_part(of_part, component, "loss term", kOfLoss);
        keep_from_evaluations(of_part, component);
      }
    }
  }

  template <class Keys>
  void take_part(const std::string& place, Value& component, std::string_view kind,
                 const Keys& common) {
    const Value* type = find_in_map(component, "type");
    if (type == nullptr || !type->is_text()) return;
    const Registration* registration = find_component(kind, type->as_text());
    if (registration == nullptr) {
      return note(place, fmt::format("{} is not here: `stepop list '{}'` shows what there is; "
                                     "remove it, or write a class of your own",
                                     type->as_text(), kind));
    }
    if (type->as_text() == "feature" && find_in_map(component, "vgg19") == nullptr) {
      note(place,
           "needs vgg19: the file of VGG19's weights, which you make once; the message of a "
           "start without it has the line");
    }
    if (find_in_map(component, "method") != nullptr && component.as_map().contains("args")) {
      note(place + "/args", "left out: it is that of method");
      component.as_map().erase("args");
    }
    leave_unread(place, component.as_map(), common, registration);
  }

  /// Removes keys that neither the component nor its place reads, with a note for each.
  template <class Keys>
  void leave_unread(const std::string& place, Value::Map& part, const Keys& common,
                    const Registration* registration) {
    std::vector<std::string> unread;
    for (const auto& [key, value] : part) {
      const auto& own = registration->about.parameters;
      const auto is_key = [&](const Parameter& each) { return each.name == key; };
      if (std::ranges::find(common, key) != common.end() || std::ranges::any_of(own, is_key)) {
        continue;
      }
      const std::string why = why_dlas_key_is_left_out("parts/" + key);
      note(place + "/" + key, why == "no counterpart"
                                  ? fmt::format("left out: {} has no such key", registration->name)
                                  : why);
      unread.push_back(key);
    }
    for (const auto& key : unread) part.erase(key);
  }

  void take_optimizer(const std::string& place, Value::Map& step) {
    const bool has_losses = step.contains("losses") && !is_switched_off(*step.find("losses"));
    const Value* params = step.find("optimizer_params");
    const bool has_params = params != nullptr && !params->is_null();
    Value::Map legacy;
    for (const auto key : kLegacy) {
      if (const Value* found = step.find(key)) legacy.set(key, *found);
      step.erase(key);
    }
    if (has_params && !legacy.empty())
      note(place, "its own lr, weight_decay and betas are left out: optimizer_params counts");
    if (!has_params && has_losses && legacy.contains("lr")) {
      step.set("optimizer_params", Value(legacy));
      note(place,
           "its lr, weight_decay and betas are optimizer_params now: where they were, nothing read "
           "them, and the step trained nothing");
    } else if (!has_params && has_losses) {
      step.set("optimizer_params", Value());
      note(place, "has no optimizer_params, and trained nothing: its losses are logged alone");
    } else if (!has_losses) {
      step.erase("optimizer_params");
      step.erase("optimizer");
      step.erase("clip_grad_eps");
    }
    const Value* optimizer = step.find("optimizer");
    if (optimizer != nullptr && *optimizer == Value("adamw_zero")) {
      step.set("optimizer", Value("adamw"));
      set("distributed/shard_optimizer", true);
      note(place + "/optimizer",
           "adamw_zero becomes adamw, and distributed/shard_optimizer: with --processes N each has "
           "a share of the averages");
    } else if (optimizer != nullptr && *optimizer == Value("mu_adamw")) {
      note(place + "/optimizer", "mu_adamw needs the Python package mup, and is refused here");
    }
    if (has_losses && step.contains("optimizer_params") &&
        !step.find("optimizer_params")->is_null()) {
      if (find_in_map(*step.find("optimizer_params"), "param_groups") != nullptr) {
        note(place + "/optimizer_params/param_groups",
             "each group needs the names of its parameters: match: \"^head\\.\"");
      }
      drop_unread_params(place, step);
      const Value* training = step.find("training");
      if (training != nullptr && training->is_text()) trained_.insert(training->as_text());
    }
    if (step.contains("check_grads_for_nan") && *step.find("check_grads_for_nan") == Value(true)) {
      set("on_nan", "skip");
    }
  }

  /// There, an optimizer ignores the parameters of another one.
  void drop_unread_params(const std::string& place, Value::Map& step) {
    const Value* optimizer = step.find("optimizer");
    const Value kind = optimizer == nullptr ? Value("adamw") : *optimizer;
    Value* params = step.find("optimizer_params");
    if (!kind.is_text() || !params->is_map()) return;
    const bool has_momentum = kind == Value("sgd") || kind == Value("lars");
    for (const char* key : {"momentum", "beta1", "beta2", "lars_coefficient"}) {
      const bool is_read = key == std::string_view("lars_coefficient") ? kind == Value("lars")
                           : key == std::string_view("momentum")       ? has_momentum
                                                                       : !has_momentum;
      if (is_read || !params->as_map().contains(key)) continue;
      params->as_map().erase(key);
      note(fmt::format("{}/optimizer_params/{}", place, key),
           fmt::format("left out: {} does not read it", kind.as_text()));
    }
  }

  void note_untrained() {
    for (const auto& name : names_) {
      if (trained_.contains(name)) continue;
      const Value* network = dlas_.find("networks/" + name);
      const Value* trainable = find_in_map(*network, "trainable");
      if (trainable != nullptr && *trainable == Value(false)) continue;
      set("networks/" + name + "/trainable", false);
      note("networks/" + name, "no step trains it: trainable: false says that it is meant so");
    }
  }

  void set(std::string_view path, Value value) { result_.set(path, std::move(value)); }
  void note(const std::string& key, std::string text) { result_.note(key, std::move(text)); }

  const Value& dlas_;
  TranslatedConfig& result_;
  std::set<std::string> names_;    ///< The networks' names.
  std::set<std::string> trained_;  ///< The networks that a step trains.
};

}  // namespace

void translate_dlas_steps(const Value& dlas, TranslatedConfig& result) {
  StepsTranslation(dlas, result).run();
}

}  // namespace stepop
