#include "runtime/train/session/freezing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/train/optim/named_parameters.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int64_t read_step(const Config& rule, const char* key, int64_t fallback, int64_t steps_per_epoch) {
  if (!rule.has(key)) return fallback;
  return read_steps(rule, key, steps_per_epoch, "a resume could not know them",
                    /*may_be_zero=*/true);
}

}  // namespace

Freezing::Freezing(const Config& config, const Networks& networks, int64_t steps_per_epoch) {
  if (!config.has("freeze")) return;
  const Value* rules = config.peek("freeze");
  if (!rules->is_list()) {
    throw config.error(
        "freeze",
        fmt::format("expected a list of {{match: REGEX, until: 5e}}, found {}", rules->describe()));
  }
  std::vector<std::string> names;
  std::vector<std::string> short_names;  // without the network's name
  std::vector<size_t> positions;         // in parameters_, which has a tied tensor once
  std::map<const void*, size_t> position_of;
  for (const auto& network : networks.names()) {
    for (const auto& [name, tensor] : networks.parameters({network})) {
      names.push_back(fmt::format("{}.{}", network, name));
      short_names.push_back(name);
      const auto [place, is_new] =
          position_of.try_emplace(tensor.unsafeGetTensorImpl(), parameters_.size());
      positions.push_back(place->second);
      if (is_new) parameters_.push_back(tensor);
      if (is_new) names_of_.emplace_back();
      names_of_[place->second].push_back(names.back());
    }
  }
  for (size_t i = 0; i < rules->as_list().size(); ++i) {
    const Config place = config.at(fmt::format("freeze/{}", i));
    if (const Value& rule = rules->as_list()[i]; !rule.is_map()) {
      throw place.error("",
                        fmt::format("expected a map such as {{match: {}}}, found {}",
                                    rule.is_text() ? rule.as_text() : "REGEX", rule.describe()));
    }
    const NamePattern pattern = read_pattern(place, "match");
    Rule rule{place.get<std::string>("match"),
              read_step(place, "from", 0, steps_per_epoch),
              read_step(place, "until", kNever, steps_per_epoch),
              {}};
    for (const size_t found : find_names(pattern, names, short_names)) {
      rule.parameters.insert(positions[found]);
    }
    if (rule.until <= rule.from) {
      throw place.error("until",
                        fmt::format("expected more than from, which is step {}", rule.from));
    }
    if (rule.parameters.empty()) {
      throw place.error("match", fmt::format("\"{}\" matches no parameter; the parameters are: {}",
                                             rule.match, list_text(names)));
    }
    changes_.insert(changes_.end(), {rule.from, rule.until});
    rules_.push_back(std::move(rule));
  }
  std::sort(changes_.begin(), changes_.end());
}

void Freezing::begin_step(int64_t step) {
  if (rules_.empty()) return;
  const bool has_change = std::any_of(changes_.begin(), changes_.end(), [&](int64_t change) {
    return change > last_step_ && change <= step;
  });
  if (!has_change && step > last_step_ && last_step_ >= 0) {
    last_step_ = step;
    return;
  }
  last_step_ = step;
  const std::vector<char> is_frozen = frozen_at(step);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool is_trained = is_frozen[i] == 0;
    if (parameters_[i].requires_grad() == is_trained) continue;
    parameters_[i].set_requires_grad(is_trained);
    parameters_[i].mutable_grad().reset();
  }
}

std::vector<char> Freezing::frozen_at(int64_t step) const {
  std::vector<char> is_frozen(parameters_.size(), 0);
  for (const auto& rule : rules_) {
    if (step < rule.from || step >= rule.until) continue;
    for (const size_t i : rule.parameters) is_frozen[i] = 1;
  }
  return is_frozen;
}

void Freezing::check_some_trained(const Config& config, const Networks::Updates& updates,
                                  int64_t step, int64_t num_steps) const {
  std::set<const void*> trained;
  for (const auto& [name, update] : updates) {
    for (const auto& [key, tensor] : update->optimizer().parameters()) {
      trained.insert(tensor.unsafeGetTensorImpl());
    }
  }
  std::vector<int64_t> steps = changes_;
  steps.push_back(step);
  std::ranges::sort(steps);
  for (const int64_t at : steps) {
    if (at < step || at >= num_steps || trained.empty()) continue;
    const std::vector<char> is_frozen = frozen_at(at);
    std::set<const void*> left = trained;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (is_frozen[i] != 0) left.erase(parameters_[i].unsafeGetTensorImpl());
    }
    if (!left.empty()) continue;
    throw config.error(
        "freeze", fmt::format("holds all parameters that are trained in step {}: nothing is "
                              "left for an update to change\n  on the command line, to train them "
                              "all: --freeze null",
                              with_thousands(at + 1)));
  }
}

std::vector<int64_t> Freezing::begins() const {
  std::vector<int64_t> steps;
  for (const auto& rule : rules_) steps.push_back(rule.from);
  return steps;
}

std::vector<std::string> Freezing::descriptions() const {
  std::vector<std::string> lines;
  for (const auto& rule : rules_) {
    std::string line =
        fmt::format("freeze    {}: {}", rule.match, counted(rule.parameters.size(), "parameter"));
    if (rule.from > 0) line += fmt::format(", from step {}", with_thousands(rule.from));
    if (rule.until < kNever) line += fmt::format(", until step {}", with_thousands(rule.until));
    std::vector<std::string> tied;
    for (const size_t i : rule.parameters) {
      if (names_of_[i].size() > 1) tied.push_back(tied_text(names_of_[i]));
    }
    if (!tied.empty()) line += "; tied: " + list_text(tied);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace stepop
