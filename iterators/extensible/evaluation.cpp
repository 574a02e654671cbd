#include "iterators/extensible/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <variant>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop::extensible {

EvaluatorRegistry& evaluators() {
  static EvaluatorRegistry registry("evaluator", "metric");
  return registry;
}

namespace {

constexpr const char* kPlace = "eval/evaluators";

constexpr const char* kFid =
    "it is fid here: {type: fid, real: hq, fake: gen, features: inception.pt}, of pictures that "
    "the steps make of the validation split, or with dataset: NAME of datasets/NAME";
constexpr const char* kSound = "it needs networks for sound that only its author has";

/// DL-Art-School's evaluators that do not exist here, and why.
const std::map<std::string, const char*>& refused() {
  static const std::map<std::string, const char*> all = {
      {"style_transfer", kFid},
      {"sr_style_transfer", kFid},
      {"sr_fid", kFid},
      {"fid_for_structural_nets", kFid},
      {"sr_diffusion_fid", kFid},
      {"single_point_pair_contrastive_eval",
       "it needs a network of pixel contrast, which stepop does not have; the distance of two keys "
       "is a loss, which a step logs"},
      {"mel", "it needs Tacotron 2, which stepop does not have"},
      {"wer", "it cannot run there either: what it imports is gone"},
      {"audio_diffusion_fid", kSound},
      {"music_diffusion_fid", kSound}};
  return all;
}

bool is_registered(const std::string& type) {
  const auto& all = evaluators().registrations();
  return std::any_of(all.begin(), all.end(),
                     [&](const Registration& each) { return each.name == type; });
}

/// The registered kind of the evaluator at `params`.
EvaluatorKind kind_of(const Config& params) {
  const auto type = params.get<std::string>("type");
  const auto known = refused().find(type);
  if (known != refused().end() && !is_registered(type)) {
    throw params.error(
        "type", fmt::format("\"{}\" is an evaluator of DL-Art-School: {}", type, known->second));
  }
  return evaluators().factory(type, params, "type")();
}

/// Computes an evaluator's metric of the whole split, with the options of the evaluator itself.
Logs evaluator_over_split(const CallbackArguments& arguments) {
  const Config all = arguments.config.at(kPlace);
  if (all.peek(arguments.name) == nullptr) {
    throw Error(fmt::format("{} has no evaluator \"{}\"; there are: {}", kPlace, arguments.name,
                            list_text(all.keys())));
  }
  if (!all.has(arguments.name)) {
    throw NoNumbers(fmt::format("{}/{}: null, which disables it", kPlace, arguments.name));
  }
  const Config params = all.at(arguments.name);
  const Attribute* attribute = arguments.data_out.attributes().find("global_step");
  const auto* step = attribute == nullptr ? nullptr : std::get_if<int64_t>(attribute);
  const int64_t iteration = step == nullptr ? 0 : *step + first_iteration(params);
  if (const Gate gate(params); step != nullptr && !gate.is_open(iteration)) {
    const char* by = iteration < gate.after    ? "after"
                     : iteration > gate.before ? "before"
                                               : "every";
    throw NoNumbers(fmt::format(
        "{}/{} is {}: nothing is measured at step {}; stepop -p RUN --{}/{} null measures it",
        params.where(), by, params.peek(by)->describe(), *step, join_path(kPlace, arguments.name),
        by));
  }
  const EvaluatorKind kind = kind_of(params);
  if (!kind.over_split) {  // a number of each example
    const std::string label = "labels/" + arguments.name;
    return {.scalars = {{"mean", arguments.data_out.read(label).to(at::kDouble).mean()}}};
  }
  return {.scalars = kind.over_split({arguments.root, arguments.data_in, arguments.data_out,
                                      arguments.config, params, arguments.name})};
}

STEPOP_REGISTER(callbacks(), kEvaluatorCallback, evaluator_over_split,
                {"What an evaluator of an ExtensibleTrainer says of the whole split.", {}});

/// The split that the evaluator at `params` measures alone; empty without `dataset`.
std::string read_dataset(const Config& params) {
  constexpr const char* kKey = "dataset";
  if (!params.has(kKey)) return {};
  const Config all = params.root().at("datasets");
  if (!params.peek(kKey)->is_text()) {
    throw params.error(kKey,
                       fmt::format("expected the name of one of datasets, such as faces for "
                                   "datasets: {{faces: {{class: ImageFolder, ...}}}}, found {}",
                                   params.peek(kKey)->describe()));
  }
  auto name = params.get<std::string>(kKey);
  if (name == "train") {
    throw params.error(kKey, "is what a training learns from; an evaluation has another name");
  }
  if (!all.has(name)) {
    throw params.error(
        kKey, fmt::format("there is no datasets/{}; there are: {}", name, list_text(all.keys())));
  }
  return name;
}

/// The places of the evaluations of a split that are on: `eval_hook`, `evaluations/test`.
std::vector<std::string> evaluations_of(const Config& config, const std::string& split) {
  std::vector<std::string> all{"eval_hook"};
  for (const auto& name : config.at("evaluations").keys()) {
    all.push_back(join_path("evaluations", name));
  }
  std::erase_if(all, [&](const std::string& place) {
    const Value* evaluation = config.peek(place);
    if (evaluation != nullptr && !evaluation->is_map()) return true;  // null, or a mistake
    const std::string key = place + "/eval_op";
    const std::string op = config.has(key) ? config.get<std::string>(key) : "validation/eval_op";
    return !op.starts_with(split + "/");
  });
  return all;
}

/// Has the evaluator's dataset evaluated, and its metric of the split found there alone.
void plan_evaluation(const Config& config, const EvaluatorPart& part) {
  if (part.dataset.empty()) return;
  const std::string place = join_path("evaluations", part.dataset);
  const bool is_named = config.peek(place) != nullptr;  // null switches it off
  if (!is_named && evaluations_of(config, part.dataset).empty()) {
    config.set_default(place + "/eval_op", part.dataset + "/eval_op");
    if (const Value* freq = config.peek("eval_hook/freq")) {
      config.set_default(place + "/freq", *freq);
    }
  }
  if (!part.is_over_split) return;
  for (const auto& each : evaluations_of(config, part.dataset)) {
    config.set_default(fmt::format("{}/eval_callbacks/{}", each, part.name), kEvaluatorCallback);
  }
}

}  // namespace

std::vector<EvaluatorPart> build_evaluators(const Context& context, Keys& keys) {
  const Config& config = context.config;
  if (!config.has(kPlace)) return {};
  if (!config.peek(kPlace)->is_map()) {
    throw config.error(kPlace,
                       fmt::format("expected a map of names and evaluators, such as "
                                   "{{psnr: {{type: psnr, real: hq, fake: gen}}}}, found {}",
                                   config.peek(kPlace)->describe()));
  }
  std::vector<EvaluatorPart> made;
  for (const auto& name : config.at(kPlace).keys()) {
    if (!config.has(join_path(kPlace, name))) continue;  // null disables an evaluator
    const Config params = config.at(join_path(kPlace, name));
    EvaluatorPart part;
    part.name = name;
    part.place = params.where();
    const EvaluatorKind kind = kind_of(params);
    part.type = params.get<std::string>("type");
    part.gate = Gate(params);
    Ports ports(context, keys, params.has("for") ? params.get<std::string>("for") : "");
    if (params.has("for")) ports.module(params, "for");  // throws for an unknown network
    part.evaluator = kind.make(params, ports);
    part.is_over_split = static_cast<bool>(kind.over_split);
    part.dataset = read_dataset(params);
    part.reads = ports.all_read();
    if (!ports.all_written().empty()) {
      throw UsageError(
          fmt::format("{}: an evaluator only reads keys of the state; what it makes "
                      "goes into the outputs",
                      part.place));
    }
    plan_evaluation(config, part);
    made.push_back(std::move(part));
  }
  if (!made.empty() && !config.has("datasets/validation") && !config.has("evaluations")) {
    throw config.error(kPlace, "nothing is evaluated: there is no datasets/validation");
  }
  return made;
}

}  // namespace stepop::extensible
