#include "runtime/train/when/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/core/components/foreign_names.h"
#include "runtime/core/config/batch_size.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/training_length.h"

namespace stepop {
namespace {

/// Far beyond any training, and no sum of two such numbers overflows.
constexpr int64_t kMostSteps = 1'000'000'000'000'000'000;

/// edflow's growing interval: `start_log_freq`, doubled after every log up to `log_freq`; and the
/// last step.
Trigger default_log_trigger(const Config& config, int64_t steps_per_epoch) {
  const auto start = own_key<int64_t>(config, "start_log_freq");
  const Value* frequency = config.peek("log_freq");
  if (frequency != nullptr && !frequency->is_int()) {
    return {config, "log_freq", steps_per_epoch};
  }
  const auto full = config.get_at_least("log_freq", 1, own_default("log_freq").as_int());
  return Trigger::every_steps(static_cast<double>(std::min(start, full)), 2,
                              static_cast<double>(full))
      .and_at_end();
}

/// Reads `{format: jpeg, quality: 90}` at `key`; missing keys take their values from `usual`.
ImageEncoding read_images(const Config& config, const std::string& key,
                          const ImageEncoding& usual) {
  if (!config.has(key)) return usual;
  if (!config.peek(key)->is_map()) {
    throw config.error(key, fmt::format("expected a map such as {{format: jpeg, quality: 90}}, "
                                        "found {}",
                                        config.peek(key)->describe()));
  }
  const Config part = config.at(key);
  const auto format = part.get("format", usual.is_jpeg ? "jpeg" : "png");
  if (format != "png" && format != "jpeg") {
    throw part.error("format", fmt::format("expected png or jpeg, found \"{}\"", format));
  }
  return {.is_jpeg = format == "jpeg",
          .quality = static_cast<int>(part.get_between("quality", 1, 100, usual.quality))};
}

/// The common settings of a list of ops: when the ops are due, how their images become files.
struct UsualOp {
  Trigger when;
  std::optional<ImageEncoding> images = {};  ///< None where there are no images.
  std::string place = {};                    ///< As ScheduledOp::place.
};

/// Reads a list of ops at `key`. An op is a text, or a map {op, when, images} in which one of
/// `when` and `images` may be left out.
std::vector<ScheduledOp> read_ops(const Config& config, const std::string& key,
                                  const std::string& example, const std::string& map_example,
                                  const UsualOp& usual, int64_t steps_per_epoch) {
  // Not read as a whole, or every key in it would count as known.
  const Value list = config.has(key) ? *config.peek(key) : config.get<Value>(key);
  if (!list.is_list()) {
    throw config.error(key, fmt::format("expected a list of ops, such as [train/{}], found {}",
                                        key == "log_ops" ? "log_op" : "train_op", list.describe()));
  }
  std::vector<ScheduledOp> ops;
  for (size_t i = 0; i < list.as_list().size(); ++i) {
    const Value& item = list.as_list()[i];
    const std::string path = fmt::format("{}/{}", key, i);
    config.has(path);
    if (item.is_text()) {
      ops.push_back({.name = parse_op(config, path, item.as_text(), example),
                     .when = usual.when,
                     .images = usual.images.value_or(ImageEncoding{}),
                     .place = usual.place});
    } else if (item.is_map() && item.as_map().contains("op")) {
      const Config map = config.at(path);
      const bool is_usual = usual.images && map.has("images") && !map.has("when");
      ops.push_back({.name = parse_op(config, path, map.get<std::string>("op"), example),
                     .when = is_usual ? usual.when : Trigger(map, "when", steps_per_epoch),
                     .place = is_usual ? usual.place : path + "/when"});
      if (usual.images) ops.back().images = read_images(map, "images", *usual.images);
    } else {
      throw config.error(path, fmt::format("expected an op, such as {}, or a map {}, found {}",
                                           example, map_example, item.describe()));
    }
  }
  return ops;
}

/// The log ops that the iterator adds to those of the config.
std::vector<ScheduledOp> read_own_log_ops(const Config& config, const OrderedMap<std::string>& own,
                                          const ImageEncoding& images, int64_t steps_per_epoch) {
  std::vector<ScheduledOp> ops;
  for (const auto& [name, path] : own) {
    const bool is_given = config.peek(path) != nullptr;
    config.set_default(path, Value("1e"));
    ops.push_back({.name = {"train", name},
                   .when = Trigger(config, path, steps_per_epoch),
                   .images = images,
                   .place = is_given ? path : ""});
  }
  return ops;
}

std::vector<ScheduledOp> read_log_ops(const Config& config, int64_t steps_per_epoch,
                                      const OrderedMap<std::string>& own, Trigger& plain_log) {
  const UsualOp usual{default_log_trigger(config, steps_per_epoch),
                      read_images(config, "log_images", {}),
                      config.peek("log_freq") != nullptr ? "log_freq" : ""};
  const auto own_ops = read_own_log_ops(config, own, *usual.images, steps_per_epoch);
  if (config.has("log_ops")) {
    auto ops = read_ops(config, "log_ops", "validation/log_op",
                        "{op: validation/sample_op, when: 500}", usual, steps_per_epoch);
    if (ops.empty()) plain_log = usual.when;
    ops.insert(ops.end(), own_ops.begin(), own_ops.end());
    return ops;
  }
  plain_log = usual.when;
  std::vector<ScheduledOp> ops;
  const auto add = [&](const char* split) {
    ops.push_back({.name = {split, "log_op"},
                   .when = usual.when,
                   .images = *usual.images,
                   .place = usual.place});
  };
  add("train");
  if (config.has("datasets/validation")) add("validation");
  Value::List names;
  for (auto& op : ops) {
    op.is_default = true;
    names.push_back(op.name.text());
  }
  config.note_default("log_ops", names);
  ops.insert(ops.end(), own_ops.begin(), own_ops.end());
  return ops;
}

/// What a step does may only depend on the step number: otherwise a resumed run would differ from a
/// run that never stopped.
void check_train_trigger(const Config& config, const std::string& path, const Trigger& when) {
  if (when.depends_on_clock()) {
    throw no_minutes(config, path, "what a training does may not depend on the clock");
  }
  if (when.at_end()) {
    throw config.error(path,
                       "at_end is for log ops: what a training does may not depend on where "
                       "it ends, since it may be continued");
  }
}

/// Reads the list of train ops at `key`, for the whole training or for a stage.
std::vector<ScheduledOp> read_op_list(const Config& config, const std::string& key,
                                      int64_t steps_per_epoch) {
  std::vector<ScheduledOp> ops =
      read_ops(config, key, "train/train_op", "{op: train/train_op/generator, when: 5}",
               {Trigger::every_steps(1)}, steps_per_epoch);
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string path = fmt::format("{}/{}", key, i);
    const std::string name = ops[i].name.text();
    if (ops[i].name.split != "train") {
      throw config.error(path, "a train op belongs to the split train: train/train_op");
    }
    check_train_trigger(config, path + "/when", ops[i].when);
    const bool is_repeated =
        std::any_of(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const auto& other) { return other.name.text() == name; });
    if (is_repeated) throw config.error(path, fmt::format("\"{}\" is there twice", name));
  }
  return ops;
}

std::vector<ScheduledOp> read_train_ops(const Config& config, int64_t steps_per_epoch) {
  std::vector<ScheduledOp> ops;
  const std::vector<Turn> turns = read_turns(config, steps_per_epoch);
  for (size_t i = 0; i < turns.size(); ++i) {
    const std::string key = fmt::format("stages/{}/train_ops", i);
    std::vector<ScheduledOp> of_stage = read_op_list(config, key, steps_per_epoch);
    if (of_stage.empty()) throw config.error(key, "expected at least one train op, found []");
    for (ScheduledOp& op : of_stage) {
      op.turn = turns[i];
      if (op.place.empty()) op.place = fmt::format("stages/{}", i);
      ops.push_back(std::move(op));
    }
  }
  if (turns.empty() && config.has("train_ops"))
    ops = read_op_list(config, "train_ops", steps_per_epoch);
  if (ops.empty()) {
    ops.push_back({{"train", "train_op"}, Trigger::every_steps(1)});
    config.note_default("train_ops", Value::List{ops.back().name.text()});
  }
  return ops;
}

/// When snapshots are taken: `swa: {from: 5e, every: 1e}`; by default once an epoch.
Trigger read_snapshots(const Config& config, int64_t steps_per_epoch) {
  if (!config.has("swa")) return Trigger::never();
  config.set_default("swa/every", own_default("swa/every"));
  const Trigger when(config, "swa", steps_per_epoch);
  check_train_trigger(config, "swa", when);
  if (when.at_start()) {
    throw config.error("swa/at_start", "a snapshot is taken after a step: from says which");
  }
  return when;
}

/// `num_epochs`, which need not be whole, in steps; an epoch has one step where nothing trains.
int64_t steps_of_epochs(const Config& config, bool train, int64_t steps_per_epoch) {
  const double epochs = config.get<double>("num_epochs");
  const double steps = epochs * static_cast<double>(steps_per_epoch) + 0.5;
  const std::string found = config.peek("num_epochs")->describe();
  if (!(epochs > 0)) {
    throw config.error("num_epochs", "expected more than 0, found " + found);
  }
  if (steps >= static_cast<double>(kMostSteps)) {
    throw config.error("num_epochs", "expected a number that can be reached, found " + found);
  }
  const auto whole = static_cast<int64_t>(steps);
  if (whole > 0 || !train) return std::max<int64_t>(whole, 1);
  throw config.error("num_epochs", fmt::format("{} of an epoch of {} steps is less than one step",
                                               found, steps_per_epoch));
}

/// Reads where the training ends.
void read_end(const Config& config, bool debug, Settings& settings) {
  settings.debug_steps = own_key<int64_t>(config, "debug/max_steps");
  if (debug) settings.num_steps = std::min(settings.num_steps, settings.debug_steps);
  settings.num_epochs =
      (settings.num_steps + settings.steps_per_epoch - 1) / settings.steps_per_epoch;
  if (config.has("max_time")) settings.max_seconds = read_seconds(config, "max_time");
  if (config.has("stop_at")) settings.stop_at = own_key<int64_t>(config, "stop_at");
}

int64_t read_run_ahead(const Config& config, int64_t steps_per_epoch) {
  constexpr const char* kKey = "run_ahead";
  if (!config.has(kKey)) return 0;
  return read_steps(config, kKey, steps_per_epoch, "a training counts what it is ahead in steps");
}

TelemetrySettings read_telemetry(const Config& config, int64_t steps_per_epoch) {
  const Config part = config.at("telemetry");
  TelemetrySettings settings;
  settings.is_active = own_key<bool>(part, "active");
  if (part.has("weights")) settings.weights = Trigger(part, "weights", steps_per_epoch);
  if (part.has("gradients")) settings.gradients = Trigger(part, "gradients", steps_per_epoch);
  if (settings.gradients.depends_on_clock()) {
    throw no_minutes(part, "gradients",
                     "before a step it is known whether its gradients are counted");
  }
  if (part.has("parameters")) settings.parameters = read_pattern(part, "parameters");
  return settings;
}

}  // namespace

TrainingLength read_training_length(const Config& config, int64_t batches_per_epoch, bool train,
                                    int64_t processes) {
  const int64_t accumulate = own_key<int64_t>(config, "accumulate");
  TrainingLength length{.steps_per_epoch = (batches_per_epoch + accumulate - 1) / accumulate,
                        .num_steps = 0,
                        .examples_per_step = 1};
  if (config.has("batch_size")) {
    length.examples_per_step = accumulate * read_batch_size(config, processes);
  }
  const bool has_steps = config.has("num_steps");
  const bool has_epochs = config.has("num_epochs");
  if (has_epochs) length.num_steps = steps_of_epochs(config, train, length.steps_per_epoch);
  if (has_steps) length.num_steps = own_key<int64_t>(config, "num_steps");
  if (!train || has_steps || has_epochs) return length;
  for (const char* key : {"num_epochs", "num_steps"}) {
    if (const auto text = foreign_name_of(config, key); !text.empty()) throw UsageError(text);
  }
  throw config.error("num_epochs",
                     "missing: give num_epochs or num_steps, which says when the training ends");
}

Settings::Settings(const Config& config, int64_t batches_per_epoch, bool train, bool debug,
                   const OrderedMap<std::string>& own_log_ops, int64_t processes) {
  accumulate = own_key<int64_t>(config, "accumulate");
  splits_batches = own_key<std::string>(config, "on_out_of_memory") == "split";
  const TrainingLength length = read_training_length(config, batches_per_epoch, train, processes);
  examples_per_step = length.examples_per_step;
  steps_per_epoch = length.steps_per_epoch;
  num_steps = length.num_steps;
  const LengthScope lengths([&] { return length; });
  read_end(config, debug, *this);
  train_ops = read_train_ops(config, steps_per_epoch);
  log_ops = read_log_ops(config, steps_per_epoch, own_log_ops, plain_log);

  if (config.has("ckpt_freq")) checkpoint = Trigger(config, "ckpt_freq", steps_per_epoch);
  checkpoint_zero = own_key<bool>(config, "ckpt_zero");
  retention = read_retention(config, steps_per_epoch);

  swa = read_snapshots(config, steps_per_epoch);
  telemetry = read_telemetry(config, steps_per_epoch);
  if (const Value* all = config.peek("integrations");
      all != nullptr && !all->is_null() && !all->is_map()) {
    throw config.error("integrations",
                       fmt::format("expected a map, such as {{tensorboard: {{active: true}}}}, "
                                   "found {}",
                                   all->describe()));
  }
  const bool no_integrations = own_key<bool>(config, "debug/disable_integrations") && debug;
  for (const Registration& each : stepop::integrations().registrations()) {
    const std::string path = "integrations/" + each.name;
    for (const Parameter& parameter : each.about.parameters) {
      config.has(path + "/" + parameter.name);  // known, active or not
    }
    if (!config.get(path + "/active", IntegrationParams{}.active) || no_integrations) continue;
    integrations.push_back(
        stepop::integrations().factory(each.name, config, path)(config.at(path)));
  }

  evaluations = read_evaluations(config, steps_per_epoch, train, debug);
  eval_all = own_key<bool>(config, "eval_all");
  eval_forever = own_key<bool>(config, "eval_forever");
  eval_filter = CheckpointFilter(config);
  run_ahead = read_run_ahead(config, steps_per_epoch);
}

/// A binary search within each turn, as intervals may be long: whether an op is due up to a step is
/// monotone in that step.
int64_t ScheduledOp::first_time(int64_t step, int64_t limit) const {
  constexpr int kMostTurns = 100'000;  // an op may be due in none of its turns
  for (int i = 0; i < kMostTurns && step < limit; ++i) {
    const Turn::Span span = turn.next(step);
    if (span.begin >= limit) return limit;
    if (is_due_in_step_after(span.begin)) return span.begin + 1;
    int64_t low = span.begin;
    int64_t high = std::min(span.end, limit);
    if (when.is_due({.step = low}, {.step = high})) {
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (when.is_due({.step = span.begin}, {.step = middle}) ? high : low) = middle;
      }
      return high;
    }
    step = high;
  }
  return limit;
}

int64_t Settings::steps_until_all_trained(int64_t step) const {
  const int64_t limit = std::max(num_steps, step + 1);
  int64_t last = step + 1;
  for (const auto& op : train_ops) last = std::max(last, op.first_time(step, limit));
  return last - step;
}

std::vector<DueOps> due_ops(const Settings& settings, bool train) {
  std::vector<DueOps> splits;
  const auto of = [&](const std::string& split) -> DueOps& {
    for (auto& known : splits) {
      if (known.split == split) return known;
    }
    splits.push_back({split, {}, {}, {}});
    return splits.back();
  };
  if (train) {
    for (const auto& op : settings.train_ops) {
      auto& ops = of(op.name.split).train;
      if (std::find(ops.begin(), ops.end(), op.name.op) == ops.end()) ops.push_back(op.name.op);
    }
    for (const auto& op : settings.log_ops) of(op.name.split).log.push_back(op.name.op);
  }
  for (const auto& evaluation : settings.evaluations) {
    auto& ops = of(evaluation.op.split).eval;
    const std::string& op = evaluation.op.op;
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
  }
  return splits;
}

}  // namespace stepop
