#include "runtime/train/loop/log_ops.h"

#include <set>
#include <string>
#include <utility>

namespace stepop {

bool LogOps::is_due(size_t op, const Elapsed& before, const Elapsed& now, Which which) const {
  if (logged_at_[op] == now.step) return false;
  const bool is_plain = op == ops_.size();
  const Trigger& when = is_plain ? plain_ : ops_[op].when;
  if (which == Which::kAll) return !is_plain || when.is_ever_due();
  if (now.step == 0) return when.at_start();
  return when.is_due(before, now) || (when.at_end() && which == Which::kDueAtEnd);
}

bool LogOps::is_any_due(const Elapsed& before, const Elapsed& now, Which which) const {
  if (failure_) return false;
  for (size_t i = 0; i < logged_at_.size(); ++i) {
    if (is_due(i, before, now, which)) return true;
  }
  return false;
}

OrderedMap<Logs> LogOps::run_due(const Elapsed& before, const Elapsed& now, Which which) {
  OrderedMap<Logs> results;
  if (is_due(ops_.size(), before, now, which)) logged_at_.back() = now.step;
  for (size_t i = 0; i < ops_.size() && !failure_; ++i) {
    if (!is_due(i, before, now, which)) continue;
    const OpName& name = ops_[i].name;
    try {
      Logs logs = splits_[name.split].log(name.op);
      add_parts(name.text(), logs);
      results.set(name.text(), std::move(logs));
      logged_at_[i] = now.step;
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  if (failure_) take_batches(before, now, which);
  return results;
}

/// Those of ops that are due and did not run.
void LogOps::take_batches(const Elapsed& before, const Elapsed& now, Which which) {
  std::set<std::string> splits;
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (is_due(i, before, now, which)) splits.insert(ops_[i].name.split);
  }
  splits.erase("train");
  for (const auto& split : splits) splits_[split].take_batch_anyway();
}

void LogOps::run_part(const Elapsed& before, const Elapsed& next, Which which, double examples) {
  for (size_t i = 0; i < ops_.size() && !failure_; ++i) {
    const OpName& name = ops_[i].name;
    if (name.split != "train" || !is_due(i, before, next, which)) continue;
    try {
      const Logs& logs = splits_[name.split].log(name.op);
      PartLogs& part = parts_[name.text()];
      for (const auto& [key, scalar] : logs.scalars) {
        const Scalar* earlier = part.scalars.find(key);
        part.scalars.set(key, earlier == nullptr ? scalar
                                                 : mean_of(name.text() + "/" + key, *earlier,
                                                           part.examples, scalar, examples));
      }
      part.examples += examples;
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
}

/// Makes the scalars of the last batch means over all batches of the step.
void LogOps::add_parts(const std::string& op, Logs& logs) const {
  const PartLogs* part = parts_.find(op);
  if (part == nullptr) return;
  for (const auto& [key, scalar] : part->scalars) {
    const Scalar* last = logs.scalars.find(key);
    logs.scalars.set(key, last == nullptr
                              ? scalar
                              : mean_of(op + "/" + key, scalar, part->examples, *last, examples_));
  }
}

void LogOps::rethrow_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace stepop
