#include "runtime/train/loop/run_evaluations.h"

#include <algorithm>

namespace stepop {

RunEvaluations::RunEvaluations(const Settings& settings, Iterator& iterator, const Context& context,
                               const std::string& git) {
  for (const auto& each : settings.evaluations) {
    all_.push_back({Evaluation(each, iterator, context, git)});
  }
}

std::vector<std::string> RunEvaluations::due_at_start() const {
  std::vector<std::string> names;
  for (const auto& [evaluation, last, was_complete] : all_) {
    const EvaluationSettings& settings = evaluation.settings();
    if (settings.when.at_start()) names.push_back(settings.name);
  }
  return names;
}

std::vector<std::string> RunEvaluations::due(const Elapsed& now, bool all) const {
  std::vector<std::string> names;
  for (const auto& [evaluation, last, was_complete] : all_) {
    const EvaluationSettings& settings = evaluation.settings();
    if (all || settings.when.is_due(last, now)) names.push_back(settings.name);
  }
  return names;
}

void RunEvaluations::look_at(const Elapsed& now) {
  for (auto& one : all_) one.last = now;
}

void RunEvaluations::look_at(const std::string& name, const Elapsed& now) {
  if (One* one = find_one(name)) one->last = now;
}

const Evaluation* RunEvaluations::find(const std::string& name) {
  const One* one = find_one(name);
  return one == nullptr ? nullptr : &one->evaluation;
}

RunEvaluations::One* RunEvaluations::find_one(const std::string& name) {
  const auto found = std::ranges::find_if(
      all_, [&](const One& one) { return one.evaluation.settings().name == name; });
  return found == all_.end() ? nullptr : &*found;
}

std::vector<std::string> RunEvaluations::open_prefixes() const {
  std::vector<std::string> prefixes;
  for (const auto& one : all_) {
    if (!one.was_complete) prefixes.push_back(one.evaluation.settings().prefix());
  }
  return prefixes;
}

void RunEvaluations::note_complete(const std::string& name) {
  if (One* one = find_one(name)) one->was_complete = true;
}

}  // namespace stepop
