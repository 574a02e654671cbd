// How a session checks, before it trains, the names of numbers that the config waits for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/checks/callback_names.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/session/session.h"
#include "runtime/train/when/logged_metric.h"

namespace stepop {
namespace {

/// Adds the numbers of callbacks, in lines of a callback's place and its numbers, to `names`.
void add_numbers(const std::string& lines, const std::vector<std::string>& asked,
                 LoggedNames& names) {
  std::istringstream text(lines);
  std::ptrdiff_t found = 0;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string place;
    std::getline(words, place, '\t');
    // `3/f1` of the class 3 may come of another class in another batch.
    const auto may_come = [&](const std::string& number) {
      const size_t last = number.rfind('/');
      return last > place.size() && std::ranges::any_of(asked, [&](const std::string& metric) {
               return metric.starts_with(place + "/") && metric.ends_with(number.substr(last));
             });
    };
    bool is_open = false;
    for (std::string number; std::getline(words, number, '\t');) {
      // A list that is cut has them: they are what a config most often waits for.
      names.known.insert(names.known.begin() + found++, number);
      is_open = is_open || may_come(number);
    }
    if (!is_open) std::erase(names.open, place);
  }
}

}  // namespace

void Session::add_callbacks(const std::vector<WatchedNumber>& watched, const std::string& ranked_by,
                            const std::vector<EvaluatedBatch>& evaluated,
                            LoggedNames& names) const {
  std::vector<std::string> asked;
  bool is_misspelt = !ranked_by.empty();
  for (const auto& each : watched) {
    if (std::ranges::find(names.known, each.metric) != names.known.end()) continue;
    asked.push_back(each.metric);
    is_misspelt = is_misspelt || std::ranges::none_of(names.open, [&](const std::string& place) {
                    return each.metric.starts_with(place + "/");
                  });
  }
  if (asked.empty() && ranked_by.empty()) return;
  for (const auto& batch : evaluated) {
    // Each process has seen another part of the batch, and all have to come to the same.
    const std::string lines = world_.from_root([&] {
      std::string text;
      for (const auto& [place, numbers] :
           numbers_of_callbacks(*context_, batch, asked, is_misspelt)) {
        text += fmt::format("{}\t{}\n", place, fmt::join(numbers, "\t"));
      }
      return text;
    });
    add_numbers(lines, asked, names);
  }
}

void Session::check_metrics(LoggedNames names, const std::vector<EvaluatedBatch>& evaluated,
                            const std::string& ranked_by) {
  std::vector<WatchedNumber> watched = watched_numbers();
  if (const std::string& metric = settings_->retention.metric; !metric.empty()) {
    watched.insert(watched.begin(), {config_, "checkpoints/metric", metric});
  }
  // What an earlier start was content with may come later than in the first batch.
  names.is_first_look = position_.global_step == 0;
  if (names.is_first_look) add_callbacks(watched, ranked_by, evaluated, names);
  for (const auto& [config, path, metric] : watched) check_is_logged(config, path, metric, names);
  const auto is_meant = [&](const std::string& name) { return is_short_for(ranked_by, name); };
  if (ranked_by.empty() || std::ranges::any_of(names.known, is_meant)) return;
  const std::string near = meant_name(ranked_by, names.known);
  if (near.empty()) return;  // train ops may give it
  throw UnknownMetric(
      UsageError(fmt::format("metric: no log and no evaluation gives a number \"{}\"; did you mean "
                             "\"{}\"?",
                             ranked_by, near)),
      "");
}

std::vector<WatchedNumber> Session::watched_numbers() const {
  std::vector<WatchedNumber> numbers = stop_when_.watched_numbers();
  for (const auto& plateau : metric_schedules_.all()) {
    numbers.push_back({config_, plateau->path() + "/metric", plateau->metric()});
  }
  for (const auto& hook : hooks_) {
    for (auto& number : hook.hook->watched_numbers()) numbers.push_back(std::move(number));
  }
  return numbers;
}

std::vector<std::string> Session::open_names() const {
  std::vector<std::string> names = {"runtime", "hooks"};
  for (const auto& op : settings_->log_ops) names.push_back(op.name.text());
  for (const auto& op : settings_->train_ops) names.push_back(op.name.text());
  for (const auto& evaluation : settings_->evaluations) {
    const Value* callbacks = config_.peek(evaluation.place + "/eval_callbacks");
    if (callbacks == nullptr || !callbacks->is_map()) continue;
    for (const auto& [name, callback] : callbacks->as_map()) {
      names.push_back(evaluation.prefix() + "/" + name);
    }
  }
  return names;
}

}  // namespace stepop
