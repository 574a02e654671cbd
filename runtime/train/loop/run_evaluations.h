#pragma once

#include <deque>
#include <string>
#include <vector>

#include "runtime/train/loop/evaluation.h"
#include "runtime/train/when/settings.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// The evaluations of a training by their names, and when each is due.
class RunEvaluations {
 public:
  /// All must outlive this.
  RunEvaluations(const Settings& settings, Iterator& iterator, const Context& context,
                 const std::string& git);

  /// The evaluations before the first step.
  std::vector<std::string> due_at_start() const;
  /// The evaluations after a step at `now`; all evaluations with `all`.
  std::vector<std::string> due(const Elapsed& now, bool all) const;

  /// Records that every evaluation was checked at `now`: later calls of `due` look at the time
  /// after it.
  void look_at(const Elapsed& now);
  /// The same for one evaluation that has just run: its periods that passed meanwhile are not due.
  void look_at(const std::string& name, const Elapsed& now);

  /// Null when the config has no evaluation of that name.
  const Evaluation* find(const std::string& name);

  /// Records that the evaluation has yielded all of its numbers.
  void note_complete(const std::string& name);
  /// The name prefixes of evaluations that have not yet yielded all of their numbers in this start.
  std::vector<std::string> open_prefixes() const;

 private:
  struct One {
    Evaluation evaluation;
    Elapsed last = {};
    bool was_complete = false;
  };

  One* find_one(const std::string& name);

  std::deque<One> all_;
};

}  // namespace stepop
