#include "runtime/train/checks/plan_warnings.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>

#include "runtime/core/base/number_text.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/train/checks/data_warnings.h"
#include "runtime/train/checks/optimizer_warnings.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/stop_when.h"

namespace stepop {
namespace {

/// Averages with more than this share of the beginning are hardly averages of what was trained.
constexpr double kMostOfBeginning = 0.5;

/// How far a schedule is looked at.
constexpr int64_t kMostSteps = int64_t{1} << 40;

/// What differs less is rounding.
constexpr double kClose = 1.001;

/// The share of its way that a schedule hardly moves by.
constexpr double kLittle = 3e-5;

/// As in Ema.

class PlanWarnings {
 public:
  PlanWarnings(const Settings& settings, const Context& context)
      : settings_(settings),
        context_(context),
        length_(fmt::format("this training of {} step{}", with_thousands(settings.num_steps),
                            settings.num_steps == 1 ? "" : "s")) {}

  void look_at_times(const std::vector<int64_t>& freeze_begins) {
    for (const auto& op : settings_.train_ops) {
      if (op.first_time(0, settings_.num_steps + 1) > settings_.num_steps) never_due(op.place);
    }
    for (const auto& op : settings_.log_ops) look_at(op.place, op.when);
    look_at("ckpt_freq", settings_.checkpoint);
    const bool stops = settings_.stop_at < std::numeric_limits<int64_t>::max();
    if (stops && settings_.stop_at > settings_.num_steps) {
      add("stop_at", "is after the end of " + length_);
    }
    look_at("telemetry/weights", settings_.telemetry.weights);
    look_at("telemetry/gradients", settings_.telemetry.gradients);
    for (size_t i = 0; i < freeze_begins.size(); ++i) {
      if (freeze_begins[i] >= settings_.num_steps) never_due(fmt::format("freeze/{}/from", i));
    }
  }

  void look_at_averages() {
    const auto weights = own_key<std::string>(context_.config, "eval_weights");
    const auto add_averages = [&](const char* kind, const char* place, const std::string& text) {
      add(place, text + (weights == kind ? fmt::format("; eval_weights: {} evaluates the weights "
                                                       "of the training",
                                                       kind)
                                         : ""));
    };
    if (settings_.swa.is_ever_due() && !settings_.swa.is_due_within(settings_.num_steps)) {
      add_averages("swa", "swa", "no snapshot is taken in " + length_);
    }
    if (context_.networks.averaged_steps(settings_.num_steps) == 0) {
      add("ema/on_cpu",
          "the averages move first in step 10, and stay what the weights were before " + length_);
      return;
    }
    if (!context_.networks.averages_within(settings_.num_steps)) {
      add_averages("ema", "ema/decay", "the averages stay copies of the weights in " + length_);
      return;
    }
    const double part = part_of_beginning();
    if (part <= kMostOfBeginning) return;
    add("ema/decay",
        fmt::format("at the end of {} the averages are still {:.0f} % what the weights were before "
                    "its first step{}. ema: {{warmup: true}} forgets that soon, as does a smaller "
                    "decay",
                    length_, 100 * part,
                    weights == "ema" ? ", and eval_weights: ema evaluates them" : ""));
  }

  void look_at_schedules(const std::vector<BuiltSchedule>& schedules) {
    for (const auto& [config, path, schedule, short_lengths] : schedules) {
      for (const auto& [place, steps] : short_lengths) {
        add(place,
            fmt::format("{0} step{1}, less than an epoch of {2}, and with per: epoch the "
                        "number changes once an epoch. Epochs are {0}e",
                        steps, steps == 1 ? "" : "s", with_thousands(settings_.steps_per_epoch)));
      }
      // look_at_averages says more.
      const std::string place = join_path(config.path(), path);
      const bool is_given = context_.config.peek(place) != nullptr;  // else an iterator made it
      if (is_given && place != "ema/decay" && !is_short_on_purpose()) {
        look_at_beginning(config, path, *schedule);
      }
      const int64_t end = schedule->fallen_after().value_or(settings_.num_steps);
      if (settings_.num_steps - end <= settings_.num_steps / 2) continue;
      add(config, path,
          fmt::format("falls to {} within {} steps and stays there for the rest of {}. Is its "
                      "number of steps right? A chain whose last part is a number says that it is "
                      "meant so",
                      short_number(schedule->at(end)), with_thousands(end), length_));
    }
  }

  void look_at_modes(const MetricSchedules& schedules) {
    const Config& config = context_.config;
    if (const Retention& retention = settings_.retention; !retention.metric.empty()) {
      look_at_mode("checkpoints", retention.metric, retention.mode == Retention::Mode::kMax);
    }
    if (config.has("stop_when")) {
      look_at_mode("stop_when", config.get<std::string>("stop_when/metric"),
                   config.get<std::string>("stop_when/mode") == "max");
      look_at_patience(StopWhen(config, settings_.steps_per_epoch));
    }
    for (const auto& plateau : schedules.all()) {
      look_at_mode(plateau->path(), plateau->metric(), plateau->more_is_better());
      look_at_patience(*plateau);
    }
  }

  void look_at_batches() {
    const int64_t batches = context_.splits.order("train").batches_per_epoch();
    if (settings_.accumulate <= batches) return;
    add("accumulate",
        fmt::format("{} batches, but an epoch has {}, and no step takes those of two epochs: it "
                    "has {}",
                    with_thousands(settings_.accumulate), with_thousands(batches),
                    with_thousands(batches)));
  }

  void look_at_machine() {
    const int64_t size = context_.splits.order("train").batch_size();
    if (const int64_t idle = context_.world_size - size; idle > 0) {
      add("batch_size",
          fmt::format("{} processes share batches of {} example{}: {} of them never {} one",
                      context_.world_size, size, size == 1 ? "" : "s", idle,
                      idle == 1 ? "has" : "have"));
    }
    constexpr int64_t kFarAbove = 4;
    const int64_t processors = usable_processors();
    if (const int64_t threads = at::get_num_threads(); threads > kFarAbove * processors) {
      add("num_threads",
          fmt::format("{} threads share {} processor{}: they wait for each other, and a step takes "
                      "far longer than with num_threads: {}",
                      with_thousands(threads), processors, processors == 1 ? "" : "s", processors));
    }
    if (const int64_t loaders = context_.splits.loader_options().workers;
        loaders > kFarAbove * processors) {
      add("n_data_processes",
          fmt::format(
              "{} threads load batches on {} processor{}: more than {} help only where they "
              "wait for a disk or a network, and each of them holds batches in memory",
              with_thousands(loaders), processors, processors == 1 ? "" : "s", processors));
    }
  }

  const std::string& length() const { return length_; }

  void add(std::vector<std::string> texts) { std::ranges::move(texts, std::back_inserter(texts_)); }

  std::vector<std::string> take() { return std::move(texts_); }

 private:
  void add(const Config& config, std::string_view place, const std::string& text) {
    std::string line = config.error(place, text).what();
    if (std::ranges::find(texts_, line) == texts_.end()) texts_.push_back(std::move(line));
  }
  void add(std::string_view place, const std::string& text) { add(context_.config, place, text); }

  void never_due(const std::string& place) { add(place, "is never due in " + length_); }

  void look_at(const std::string& place, const Trigger& when) {
    const bool is_given = !place.empty() && when.is_ever_due();
    if (is_given && !when.is_due_within(settings_.num_steps)) never_due(place);
  }

  /// How much of the averages is, at the end, what they began with. Schedules of the decay begin
  /// small so that it is little.
  double part_of_beginning() const {
    const Config& config = context_.config;
    const Value* decay = config.peek("ema/decay");
    if (!config.has("ema") || own_key<bool>(config, "ema/warmup")) return 0;
    if (decay != nullptr && !decay->is_int() && !decay->is_float()) return 0;
    const int64_t steps = context_.networks.averaged_steps(settings_.num_steps);
    return std::pow(own_key<double>(config, "ema/decay"), static_cast<double>(steps));
  }

  /// Whether the command line gives the length, as one does to try a config.
  bool is_short_on_purpose() const {
    return std::ranges::any_of(std::array{"num_steps", "num_epochs"}, [&](const char* key) {
      const Value* value = context_.config.peek(key);
      return value != nullptr && value->origin().file == Origin::kCommandLine;
    });
  }

  /// Reports a training that ends before a schedule has done its work: the schedule stays as it is
  /// until after the end, or a learning rate rises to the end and further.
  void look_at_beginning(const Config& config, const std::string& path, const Schedule& schedule) {
    constexpr int64_t kMostLooks = 1000;
    const int64_t end = settings_.num_steps;
    const double first_number = schedule.at(0);
    const double last_number = schedule.at(end - 1);
    double before = first_number;
    bool is_still = true;
    bool is_rising = true;
    bool is_falling = true;
    for (int64_t i = 1; i <= kMostLooks; ++i) {
      const double now = schedule.at(std::min(end, end / kMostLooks * i + i));
      is_still = is_still && now == first_number;
      is_rising = is_rising && now >= before;
      is_falling = is_falling && now <= before;
      before = now;
    }
    double highest = before;
    double lowest = before;
    bool is_still_later = true;
    for (int64_t step = 1; step < kMostSteps; step += 1 + step / 64) {
      const double later = schedule.at(end + step);
      is_still_later = is_still_later && later == first_number;
      highest = std::max(highest, later);
      lowest = std::min(lowest, later);
    }
    if (is_still && !is_still_later) {
      add(config, path,
          fmt::format("stays {} in all of {}: it begins to move after its end",
                      short_number(first_number), length_));
      return;
    }
    const bool rises_at_end = schedule.at(end) > schedule.at(end - std::max<int64_t>(1, end / 100));
    const std::string key = split_path(join_path(config.path(), path)).back();
    const bool is_rate = key == "lr" || key == "adamw_lr";
    if (!is_rate) return;
    if (is_rising && rises_at_end && highest > before * kClose) {
      add(config, path,
          fmt::format(
              "still rises at the end of {}: to {}, and would later reach {}. Is its number "
              "of steps right?",
              length_, short_number(last_number), short_number(highest)));
    } else if (is_rising && rises_at_end && first_number > 0 && lowest >= schedule.at(end)) {
      add(config, path,
          fmt::format("rises to the end of {}, from {} to {}. Are these two swapped?", length_,
                      short_number(first_number), short_number(schedule.at(end))));
    } else if (is_falling && first_number - schedule.at(end) < (first_number - lowest) * kLittle) {
      add(config, path,
          fmt::format("hardly falls in {}: from {} to {}, and after it to {}. Is its number of "
                      "steps right?",
                      length_, first_number, last_number, short_number(lowest)));
    }
  }

  /// The most values of a metric that this training gives; nothing if that is unknown.
  std::optional<int64_t> values_of(const std::string& metric) const {
    for (const auto& evaluation : settings_.evaluations) {
      if (metric.starts_with(evaluation.prefix() + "/")) {
        const auto times = evaluation.when.times_within(settings_.num_steps);
        // A training also evaluates at its end.
        const auto before = evaluation.when.times_within(settings_.num_steps - 1);
        return times && times == before ? std::optional(*times + 1) : times;
      }
    }
    for (const auto& op : settings_.log_ops) {
      if (metric.starts_with(op.name.text() + "/")) {
        const auto times = op.when.times_within(settings_.num_steps);
        return times && op.when.at_end() ? *times - 1 : times;  // that of the end changes nothing
      }
    }
    return std::nullopt;
  }

  void look_at_patience(const Plateau& plateau) {
    const auto values = values_of(plateau.metric());
    // The first value is the best one so far.
    if (!values || *values > plateau.patience() + 1) return;
    add(plateau.path() + "/patience",
        fmt::format("the number falls after {} values without a better one, and {} has {} value{} "
                    "of {}: it never falls",
                    plateau.patience() + 1, length_, *values, *values == 1 ? "" : "s",
                    plateau.metric()));
  }

  void look_at_patience(const StopWhen& stop) {
    const auto values = values_of(stop.metric());
    if (const auto patience = stop.patience_in_values()) {
      if (!values || *values > *patience) return;
      add("stop_when/patience",
          fmt::format("{} has {} of {}, and the first one is the best so far: {} in a row that are "
                      "not better end nothing",
                      length_, counted(*values, "value"), stop.metric(), *patience));
      return;
    }
    const Duration patience = *stop.patience_as_span();
    if (patience.axis() != Duration::Axis::kSteps) return;
    const double steps = patience.length(settings_.steps_per_epoch);
    const auto all = static_cast<double>(settings_.num_steps);
    if (steps >= all) {
      add("stop_when/patience",
          fmt::format("{} is not over within {}: nothing ends it early", patience.text(), length_));
    } else if (values && *values > 0 && steps < std::floor(all / static_cast<double>(*values))) {
      add("stop_when/patience",
          fmt::format("{} is over before the next value of {}, of which {} has {}: the first one "
                      "that is not the best ends it; a plain number counts values: patience: 3",
                      patience.text(), stop.metric(), length_, *values));
    }
  }

  void look_at_mode(const std::string& place, const std::string& metric, bool more_is_better) {
    const MetricDirection direction = metric_direction(metric, nullptr);
    const auto other_way = more_is_better ? MetricDirection::kLower : MetricDirection::kHigher;
    if (direction != other_way) return;
    const auto [found, best] =
        more_is_better ? std::pair("max", "lowest") : std::pair("min", "highest");
    add(place + "/mode",
        fmt::format("{}, but by its name the {} {} is the best", found, best, metric));
  }

  const Settings& settings_;
  const Context& context_;
  std::string length_;
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> plan_warnings(const Settings& settings, const Context& context,
                                       const std::vector<int64_t>& freeze_begins,
                                       const std::vector<BuiltSchedule>& schedules,
                                       const MetricSchedules& metric_schedules) {
  PlanWarnings warnings(settings, context);
  warnings.look_at_times(freeze_begins);
  warnings.look_at_averages();
  warnings.add(optimizer_warnings(settings, context, warnings.length()));
  warnings.look_at_schedules(schedules);
  warnings.look_at_modes(metric_schedules);
  warnings.add(data_warnings(settings, context));
  warnings.look_at_batches();
  warnings.look_at_machine();
  return warnings.take();
}

}  // namespace stepop
