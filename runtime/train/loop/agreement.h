#pragma once

#include <cstdint>

#include "runtime/train/distributed/world.h"

namespace stepop {

/// The facts that several processes must agree on, so that all do the same next: the time by rank
/// 0's clock; signals and requests of hooks, from any process.
class Agreement {
 public:
  struct View {
    double seconds = 0;  ///< Training time of all starts.
    int signal = 0;      ///< The signal that arrived; 0 for none.
    bool is_over_time = false;
    bool has_change = false;  ///< The config changes.
    bool asks_log = false;
    bool asks_checkpoint = false;
    bool asks_evaluation = false;
    bool asks_stop = false;
  };

  /// `world` must outlive this.
  explicit Agreement(World& world) : world_(world) {}

  /// All processes call it with their `own` view, and get the common view. A single process gets
  /// its own view.
  const View& agree(const View& own);

  /// The result of the last call of `agree`.
  const View& last() const { return last_; }

 private:
  World& world_;
  View last_;
};

}  // namespace stepop
