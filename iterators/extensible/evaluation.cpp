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
    "the steps make of the validation split";
constexpr const char* kSound = "it needs networks for sound that only its author has";

/// DL-Art-School's evaluators that do not exist here, and why.
const std::map<std::string, const char*>& refused() {
  static const std::map<std::string, const char*> all = {
      {"style_transfer", kFid},
      {"sr_style_transfer", kFid},
      {"sr_fid", kFid},
      {"fid_for_structural_nets", kFid},
      {"sr_diffusion_fid", kFid},
      {"flow_gaussian_nll", "it needs a network of SRFlow, which stepop does not have"},
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
  if (const Gate gate(params); step != nullptr && !gate.is_open(*step)) {
    const char* by = *step < gate.after ? "after" : *step > gate.before ? "before" : "every";
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
    part.reads = ports.all_read();
    if (!ports.all_written().empty()) {
      throw UsageError(
          fmt::format("{}: an evaluator only reads keys of the state; what it makes "
                      "goes into the outputs",
                      part.place));
    }
    made.push_back(std::move(part));
  }
  if (!made.empty() && !config.has("datasets/validation") && !config.has("evaluations")) {
    throw config.error(kPlace, "nothing is evaluated: there is no datasets/validation");
  }
  return made;
}

}  // namespace stepop::extensible
