#include "runtime/train/loop/agreement.h"

#include <vector>

namespace stepop {

const Agreement::View& Agreement::agree(const View& own) {
  if (world_.is_alone()) return last_ = own;
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  const bool is_root = world_.is_root();
  const std::vector<double> all = world_.max(
      {is_root ? own.seconds : 0, static_cast<double>(own.signal),
       flag(own.is_over_time && is_root), flag(own.has_change && is_root), flag(own.asks_log),
       flag(own.asks_checkpoint), flag(own.asks_evaluation), flag(own.asks_stop)});
  last_ = {.seconds = all[0],
           .signal = static_cast<int>(all[1]),
           .is_over_time = all[2] > 0,
           .has_change = all[3] > 0,
           .asks_log = all[4] > 0,
           .asks_checkpoint = all[5] > 0,
           .asks_evaluation = all[6] > 0,
           .asks_stop = all[7] > 0};
  return last_;
}

}  // namespace stepop
