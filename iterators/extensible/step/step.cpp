#include "iterators/extensible/step/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "iterators/extensible/step/left_out.h"
#include "iterators/extensible/step/optimizer_of_step.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/train/networks/networks.h"

namespace stepop::extensible {

InjectorRegistry& injectors() {
  static InjectorRegistry registry("injector");
  return registry;
}

LossRegistry& losses() {
  static LossRegistry registry("loss term", "loss");
  return registry;
}

namespace {

/// Throws UsageError for a DL-Art-School component that is left out.
void check_is_here(const Config& params, std::string_view reason) {
  if (reason.empty()) return;
  throw params.error(
      "type", fmt::format("\"{}\" is left out: {}", params.get<std::string>("type"), reason));
}

}  // namespace

std::unique_ptr<Injector> make_injector(const Config& params, Ports& ports) {
  const auto type = params.get<std::string>("type");
  check_is_here(params, why_injector_is_left_out(type));
  return injectors().factory(type, params, "type")(params, ports);
}

std::unique_ptr<Loss> make_loss(const Config& params, Ports& ports) {
  const auto type = params.get<std::string>("type");
  check_is_here(params, why_loss_is_left_out(type));
  return losses().factory(type, params, "type")(params, ports);
}

namespace {

/// The names in a map of components; empty without a map. Throws UsageError for another value.
std::vector<std::string> names_of(const Config& step, const char* key) {
  if (!step.has(key)) return {};
  if (!step.peek(key)->is_map()) {
    throw step.error(key, fmt::format("expected a map of names and components, each with its "
                                      "type, found {}",
                                      step.peek(key)->describe()));
  }
  return step.at(key).keys();
}

/// Calls `make` with `params`, and stores the place, the type and the ports in `part`.
template <class Make>
auto build(const Make& make, const Config& params, Ports ports, Part& part) {
  part.place = params.where();
  part.type = params.get<std::string>("type");
  auto made = make(params, ports);
  part.reads = ports.all_read();
  part.writes = ports.all_written();
  return made;
}

void read_gates(const Config& params, const std::string& name, Part& part) {
  part.name = name;
  part.gate = Gate(params);
  part.in_evaluation = !params.get("train", false);
  part.in_training = !params.get("eval", false);
  if (part.in_training || part.in_evaluation) return;
  throw params.error("eval", "train and eval are both true: it would never run");
}

InjectorPart build_injector(const Config& params, const std::string& name, const Ports& ports) {
  InjectorPart part;
  read_gates(params, name, part);
  part.no_grad = params.get("no_grad", false);
  part.no_accum = params.get("no_accum", false);
  part.injector = build(make_injector, params, ports, part);
  return part;
}

LossPart build_loss(const Config& params, const std::string& name, const Ports& ports) {
  LossPart part;
  read_gates(params, name, part);
  part.weight = std::make_unique<Scheduled>(params, "weight");
  part.loss = build(make_loss, params, ports, part);
  return part;
}

/// The parameters of all networks except `network`.
std::vector<at::Tensor> parameters_of_others(const Context& context, const std::string& network) {
  std::vector<at::Tensor> parameters;
  for (const auto& name : context.networks.names()) {
    if (name == network) continue;
    const auto of_it = context.networks.get(name)->parameters();
    parameters.insert(parameters.end(), of_it.begin(), of_it.end());
  }
  return parameters;
}

/// The keys that the step writes and does not name in `step_outputs`.
std::vector<Slot> not_among(const std::vector<Slot>& outputs, const Step& step) {
  std::vector<Slot> others;
  const auto look = [&](const Part& part) {
    for (const auto& use : part.writes) {
      if (std::find(outputs.begin(), outputs.end(), use.slot) == outputs.end()) {
        others.push_back(use.slot);
      }
    }
  };
  for (const auto& part : step.injectors) look(part);
  for (const auto& part : step.losses) look(part);
  return others;
}

Step build_step(const Context& context, const std::string& name, Keys& keys) {
  const Config config = context.config.at("steps/" + name);
  Step step;
  step.name = name;
  step.place = config.where();
  if (const Value* trained = config.peek("training"); trained != nullptr && trained->is_list()) {
    throw config.error("training",
                       "expected the name of one network, found a list; write a step "
                       "for each");
  }
  step.network = config.get<std::string>("training");
  Ports ports(context, keys, step.network);
  ports.module(config, "training");  // throws for an unknown network
  step.gate = Gate(config);
  if (config.has("requires")) step.requires_ = Ports(ports).reads_all(config, "requires");
  for (const auto& each : names_of(config, "injectors")) {
    step.injectors.push_back(build_injector(config.at("injectors/" + each), each, ports));
  }
  for (const auto& each : names_of(config, "losses")) {
    step.losses.push_back(build_loss(config.at("losses/" + each), each, ports));
  }
  if (config.has("step_outputs")) {
    step.outputs.emplace();
    for (const auto& key : config.get<std::vector<std::string>>("step_outputs")) {
      step.outputs->push_back(keys.slot(key));
    }
    step.keeps_to_itself = not_among(*step.outputs, step);
  }
  step.others = parameters_of_others(context, step.network);
  config.get("loss_log_buffer", int64_t{50});  // ignored: the runtime logs means since the last log
  step.trained_from = Gate(context.config.at("networks/" + step.network), false).after;
  const bool is_watched_alone = config.peek("optimizer_params") != nullptr;  // null
  if (config.has("optimizer_params")) {
    if (step.losses.empty()) {
      const auto near = nearest_names("losses", config.keys(), 1);
      throw config.error(
          "optimizer_params",
          fmt::format("the step has no losses: it would train nothing{}",
                      near.empty() ? "" : "; is its key " + near[0] + " meant to be losses?"));
    }
    step.update = &update_of_step(context, name, step.network);
    step.update_gate = gate_of_optimizer(config.at("optimizer_params"));
  } else {
    if (!step.losses.empty() && !is_watched_alone) {
      throw config.error("optimizer_params",
                         "missing: the losses of the step would train nothing; give its lr and the "
                         "like here, or null when they are to be logged alone");
    }
    config.has("optimizer");
  }
  return step;
}

/// Names a loss in logs `loss_pix`, and adds its step if two steps have a loss of that name.
void name_logs(std::vector<Step>& steps) {
  std::map<std::string, int> losses;
  std::map<std::string, int> networks;
  for (const auto& step : steps) {
    ++networks[step.network];
    for (const auto& loss : step.losses) ++losses[loss.name];
  }
  for (auto& step : steps) {
    step.total_logged_as =
        fmt::format("loss_{}_total", networks[step.network] > 1 ? step.name : step.network);
    for (auto& loss : step.losses) {
      loss.logged_as = losses[loss.name] > 1 ? fmt::format("loss_{}_{}", step.name, loss.name)
                                             : fmt::format("loss_{}", loss.name);
    }
  }
}

}  // namespace

std::vector<Step> build_steps(const Context& context, Keys& keys) {
  const Config& config = context.config;
  const Value* found = config.peek("steps");
  config.has("steps");
  if (found == nullptr || !found->is_map() || found->as_map().empty()) {
    throw config.error("steps",
                       "expected a map of steps, such as {generator: {training: "
                       "generator, injectors: {...}, losses: {...}}}");
  }
  std::vector<Step> steps;
  for (const auto& name : config.at("steps").keys()) {
    steps.push_back(build_step(context, name, keys));
  }
  name_logs(steps);
  return steps;
}

}  // namespace stepop::extensible
