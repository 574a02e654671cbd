#include "runtime/when/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/when/duration.h"
#include "runtime/when/retention_settings.h"

namespace stepop {
namespace {

/// Far beyond any training, and no sum of two such numbers overflows.
constexpr double kMostSteps = 1e18;

OpName parse_op(const Config& config, std::string_view path, const std::string& text,
                const std::string& example) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    throw config.error(
        path, fmt::format("expected a split and an op, such as {}, found \"{}\"", example, text));
  }
  OpName name{text.substr(0, slash), text.substr(slash + 1)};
  if (!config.has("datasets/" + name.split)) {
    throw config.error(path, fmt::format("\"{}\" needs datasets/{}, which the config does not give",
                                         text, name.split));
  }
  return name;
}

/// edflow's growing interval: `start_log_freq`, doubled after every log up to `log_freq`.
Trigger default_log_trigger(const Config& config, int64_t steps_per_epoch) {
  const auto start = config.get_at_least("start_log_freq", 1, 1);
  const Value* frequency = config.peek("log_freq");
  if (frequency != nullptr && !frequency->is_int()) {
    return {config, "log_freq", steps_per_epoch};
  }
  const auto full = config.get_at_least("log_freq", 1, 1000);
  return Trigger::every_steps(static_cast<double>(std::min(start, full)), 2,
                              static_cast<double>(full));
}

std::vector<Settings::LogOpSetting> read_log_ops(const Config& config, int64_t steps_per_epoch) {
  const Trigger usual = default_log_trigger(config, steps_per_epoch);
  std::vector<Settings::LogOpSetting> ops;
  if (!config.has("log_ops")) {
    ops.push_back({{"train", "log_op"}, usual});
    if (config.has("datasets/validation")) ops.push_back({{"validation", "log_op"}, usual});
    return ops;
  }
  const Value list = config.get<Value>("log_ops");
  if (!list.is_list()) {
    throw config.error("log_ops", fmt::format("expected a list of ops, such as [train/log_op], "
                                              "found {}",
                                              list.describe()));
  }
  for (size_t i = 0; i < list.as_list().size(); ++i) {
    const Value& item = list.as_list()[i];
    const std::string path = fmt::format("log_ops/{}", i);
    if (item.is_text()) {
      ops.push_back({parse_op(config, path, item.as_text(), "validation/log_op"), usual});
    } else if (item.is_map() && item.as_map().contains("op")) {
      const Config map = config.at(path);
      ops.push_back({parse_op(config, path, map.get<std::string>("op"), "validation/log_op"),
                     Trigger(map, "when", steps_per_epoch)});
    } else {
      throw config.error(path, fmt::format("expected an op, such as validation/log_op, or a map "
                                           "{{op: validation/sample_op, when: 500}}, found {}",
                                           item.describe()));
    }
  }
  return ops;
}

EvalCompression read_compression(const Config& hook) {
  const std::string name = hook.get("compression", "none");
  if (name == "none") return EvalCompression::kNone;
  if (name == "gzip") return EvalCompression::kGzip;
  throw hook.error("compression", fmt::format("expected none or gzip, found \"{}\"", name));
}

/// `num_epochs`, which need not be whole, as steps.
int64_t steps_of_epochs(const Config& config, int64_t steps_per_epoch) {
  const double epochs = config.get<double>("num_epochs");
  const double steps = epochs * static_cast<double>(steps_per_epoch) + 0.5;
  const std::string found = config.peek("num_epochs")->describe();
  if (!(epochs > 0)) {
    throw config.error("num_epochs", "expected more than 0, found " + found);
  }
  if (steps >= kMostSteps) {
    throw config.error("num_epochs", "expected a number that can be reached, found " + found);
  }
  const auto whole = static_cast<int64_t>(steps);
  if (whole > 0) return whole;
  throw config.error("num_epochs", fmt::format("{} of an epoch of {} steps is no step at all",
                                               found, steps_per_epoch));
}

/// Where the training ends.
void read_end(const Config& config, bool train, bool debug, Settings& settings) {
  const bool has_steps = config.has("num_steps");
  const bool has_epochs = config.has("num_epochs");
  if (has_epochs) settings.num_steps = steps_of_epochs(config, settings.steps_per_epoch);
  if (has_steps) settings.num_steps = config.get_at_least("num_steps", 1);
  if (train && !has_steps && !has_epochs) {
    throw config.error("num_epochs",
                       "missing: give num_epochs or num_steps, which says when the "
                       "training ends");
  }
  settings.debug_steps = config.get_at_least("debug/max_steps", 1, 10);
  if (debug) settings.num_steps = std::min(settings.num_steps, settings.debug_steps);
  settings.num_epochs =
      (settings.num_steps + settings.steps_per_epoch - 1) / settings.steps_per_epoch;
  if (config.has("max_time")) settings.max_seconds = read_seconds(config, "max_time");
}

void read_train_ops(const Config& config, std::vector<OpName>& train_ops) {
  const std::vector<std::string> ops = config.get("train_ops", std::vector<std::string>{});
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string path = fmt::format("train_ops/{}", i);
    train_ops.push_back(parse_op(config, path, ops[i], "train/train_op"));
    if (train_ops.back().split != "train") {
      throw config.error(path, "a train op belongs to the split train: train/train_op");
    }
    const auto here = ops.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(ops.begin(), here, ops[i]) != here) {
      throw config.error(path, fmt::format("\"{}\" is there twice", ops[i]));
    }
  }
  if (train_ops.empty()) train_ops.push_back({"train", "train_op"});
}

void read_evaluation(const Config& config, bool debug, Settings& settings) {
  const Config hook = config.at("eval_hook");
  settings.evaluates = config.has("datasets/validation") || hook.has("eval_op");
  settings.eval_all = config.get("eval_all", false);
  settings.eval_forever = config.get("eval_forever", false);
  const std::string op = hook.get("eval_op", "validation/eval_op");
  if (settings.evaluates)
    settings.eval_op = parse_op(config, "eval_hook/eval_op", op, "validation/eval_op");
  settings.evaluation = hook.has("freq")
                            ? Trigger(hook, "freq", settings.steps_per_epoch)
                            : Trigger::every_steps(static_cast<double>(settings.steps_per_epoch));
  settings.compression = read_compression(hook);
  settings.clean_after_callbacks = hook.get("clean_after_callbacks", false);

  const int64_t batch_size = config.get_at_least("batch_size", 1);
  const int64_t test_batch_size = config.get_at_least("test_batch_size", 1, batch_size);
  const int64_t examples = config.get_at_least("debug/max_examples", 1, 5 * test_batch_size);
  if (debug) settings.max_eval_batches = (examples + test_batch_size - 1) / test_batch_size;
}

}  // namespace

Settings::Settings(const Config& config, int64_t batches_per_epoch, bool train, bool debug) {
  accumulate = config.get_at_least("accumulate", 1, 1);
  steps_per_epoch = (batches_per_epoch + accumulate - 1) / accumulate;
  read_end(config, train, debug, *this);
  read_train_ops(config, train_ops);
  log_ops = read_log_ops(config, steps_per_epoch);

  if (config.has("ckpt_freq")) checkpoint = Trigger(config, "ckpt_freq", steps_per_epoch);
  checkpoint_zero = config.get("ckpt_zero", false);
  retention = read_retention(config, steps_per_epoch);

  const bool no_integrations = config.get("debug/disable_integrations", true) && debug;
  for (const Registration& each : stepop::integrations().registrations()) {
    const std::string path = "integrations/" + each.name;
    for (const Parameter& parameter : each.about.parameters) {
      config.has(path + "/" + parameter.name);  // known, active or not
    }
    if (!config.get(path + "/active", false) || no_integrations) continue;
    integrations.push_back(
        stepop::integrations().factory(each.name, config, path)(config.at(path)));
  }

  read_evaluation(config, debug, *this);
  config.claim("extra");
}

}  // namespace stepop
