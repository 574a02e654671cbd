#pragma once

#include <deque>
#include <string>
#include <vector>

#include "runtime/train/loop/evaluation.h"
#include "runtime/train/when/settings.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// The evaluations of a training, and when each is due. They are known by their names.
class RunEvaluations {
 public:
  /// All must outlive this.
  RunEvaluations(const Settings& settings, Iterator& iterator, const Context& context,
                 const std::string& git);

  /// Those that come before the first step.
  std::vector<std::string> due_at_start() const;
  /// Those that come after a step at `now`; with `all`, all of them.
  std::vector<std::string> due(const Elapsed& now, bool all) const;

  /// It is known of each what was due until `now`.
  void look_at(const Elapsed& now);
  /// The same of one that has just run: of its periods that passed meanwhile none is due.
  void look_at(const std::string& name, const Elapsed& now);

  /// Null when the config has none of that name.
  const Evaluation* find(const std::string& name);

  /// It gave all of its numbers.
  void note_complete(const std::string& name);
  /// What the numbers of those begin with that did not give all of them yet in this start.
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
