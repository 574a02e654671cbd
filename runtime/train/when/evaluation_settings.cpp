#include "runtime/train/when/evaluation_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/config/batch_size.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

constexpr const char* kMain = "eval_hook";
constexpr const char* kOthers = "evaluations";
constexpr const char* kUsualOp = "validation/eval_op";

/// The largest number of batches with `debug`; 0 for no limit.
int64_t read_debug_limit(const Config& config, bool debug) {
  const int64_t test_batch_size = read_test_batch_size(config);
  const int64_t examples = config.get_at_least("debug/max_examples", 1, 5 * test_batch_size);
  return debug ? (examples + test_batch_size - 1) / test_batch_size : 0;
}

/// Reads the keys that both kinds of evaluation share: all but the name and the op.
EvaluationSettings read_part(const Config& config, const std::string& place,
                             int64_t steps_per_epoch, int64_t debug_limit) {
  EvaluationSettings settings{.place = place};
  const Config part = config.at(place);
  if (part.has("freq")) {
    settings.when = Trigger(part, "freq", steps_per_epoch);
  } else {
    settings.when = Trigger::every_steps(static_cast<double>(steps_per_epoch));
    part.note_default("freq", own_default(join_path(part.path(), "freq")));
  }
  settings.compression = own_key<std::string>(part, "compression") == "gzip"
                             ? EvalCompression::kGzip
                             : EvalCompression::kNone;
  settings.clean_after_callbacks = own_key<bool>(part, "clean_after_callbacks");
  settings.max_batches = own_key<int64_t>(part, "max_batches");
  if (debug_limit > 0 && (settings.max_batches == 0 || settings.max_batches > debug_limit)) {
    settings.max_batches = debug_limit;
  }
  return settings;
}

/// The name that `place` gives is a folder beside the folders of `eval_hook`'s callbacks, and a
/// prefix of metric names.
void check_name(const Config& config, const std::string& place, const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_plain)) {
    throw config.error(place, "the name of an evaluation has letters, digits, _ and - only");
  }
  if (name == "runtime" || config.has("eval_hook/eval_callbacks/" + name)) {
    throw config.error(
        place, fmt::format("{} has the same name: another one is needed",
                           name == "runtime" ? "what the runtime logs"
                                             : "a callback of eval_hook, beside whose files it "
                                               "writes,"));
  }
}

void read_others(const Config& config, int64_t steps_per_epoch, int64_t debug_limit,
                 std::vector<EvaluationSettings>& found) {
  if (!config.has(kOthers)) return;
  const Value* all = config.peek(kOthers);
  if (!all->is_map()) {
    throw config.error(
        kOthers, fmt::format("expected a map of names and evaluations, such as {{test: {{eval_op: "
                             "test/eval_op, freq: 5e}}}}, found {}",
                             all->describe()));
  }
  const Config others = config.at(kOthers);
  for (const auto& name : others.keys()) {
    if (!others.has(name)) continue;
    const std::string path = join_path(kOthers, name);
    check_name(config, path, name);
    if (!others.peek(name)->is_map()) {
      throw config.error(path, "expected a map, such as {eval_op: test/eval_op}, or null, found " +
                                   others.peek(name)->describe());
    }
    EvaluationSettings settings = read_part(config, path, steps_per_epoch, debug_limit);
    settings.name = name;
    settings.op = parse_op(config, path + "/eval_op",
                           own_key<std::string>(config.at(path), "eval_op"), "test/eval_op");
    found.push_back(std::move(settings));
  }
}

/// In a training the name of a checkpoint's metric, and which evaluation a report is of, go by its
/// having none.
std::string read_name_of_main(const Config& config, bool train) {
  constexpr const char* kPlace = "eval_hook/name";
  std::string name = config.get(kPlace, "");
  if (train && !name.empty()) {
    throw config.error(kPlace,
                       "is for evaluations without a training; those of a training have their "
                       "names in evaluations: {NAME: {eval_op: validation/eval_op}}");
  }
  if (name.empty()) return name;
  check_name(config, kPlace, name);
  if (config.has(join_path(kOthers, name))) {
    throw config.error(kPlace,
                       fmt::format("one of {} has the same name: another one is needed", kOthers));
  }
  return name;
}

}  // namespace

Value config_of_evaluation(Value config, const std::string& name) {
  const Value* part = name.empty() ? nullptr : config.find(join_path(kOthers, name));
  if (part == nullptr) return config;
  Value main = *part;
  config.as_map().set(kMain, std::move(main));
  config.as_map().erase(kOthers);
  return config;
}

std::vector<EvaluationSettings> read_evaluations(const Config& config, int64_t steps_per_epoch,
                                                 bool train, bool debug) {
  std::vector<EvaluationSettings> found;
  const int64_t debug_limit = read_debug_limit(config, debug);
  const Value* main = config.peek(kMain);
  const bool is_off = train && main != nullptr && main->is_null();
  const std::string op = own_key<std::string>(config.at(kMain), "eval_op");
  EvaluationSettings settings = read_part(config, kMain, steps_per_epoch, debug_limit);
  settings.name = read_name_of_main(config, train);
  if (!is_off && (config.has("datasets/validation") || config.has("eval_hook/eval_op"))) {
    settings.op = parse_op(config, "eval_hook/eval_op", op, kUsualOp);
    found.push_back(std::move(settings));
  }
  // A functor only replaces the op of `eval_hook`.
  if (train || !config.has("eval_functor")) {
    read_others(config, steps_per_epoch, debug_limit, found);
  }
  return found;
}

}  // namespace stepop
