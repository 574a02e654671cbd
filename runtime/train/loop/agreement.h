#pragma once

#include <cstdint>

#include "runtime/train/distributed/world.h"

namespace stepop {

/// What several processes must see alike, for all to do the same next: the time by rank 0's clock;
/// signals, and what hooks ask for, of any of them.
class Agreement {
 public:
  struct View {
    double seconds = 0;  ///< Training time of all starts.
    int signal = 0;      ///< That arrived; 0 for none.
    bool is_over_time = false;
    bool has_change = false;  ///< The config changes.
    bool asks_log = false;
    bool asks_checkpoint = false;
    bool asks_evaluation = false;
    bool asks_stop = false;
  };

  /// `world` must outlive this.
  explicit Agreement(World& world) : world_(world) {}

  /// All processes call it; `own` is what this one sees. Of a single process it is that.
  const View& agree(const View& own);

  /// The last one.
  const View& last() const { return last_; }

 private:
  World& world_;
  View last_;
};

}  // namespace stepop
