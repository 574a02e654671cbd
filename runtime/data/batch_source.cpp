#include "runtime/data/batch_source.h"

#include <vector>

namespace stepop {

TakenBatch DatasetBatches::take(int64_t number, const InterruptCheck& /*interrupt*/) {
  return {.load = [this, number] {
    std::vector<int64_t> indices = order_.indices(number);
    std::vector<Random> randoms = order_.randoms(number);
    slice_.cut(indices);
    slice_.cut(randoms);
    return load_batch(dataset_, indices, randoms);
  }};
}

TakenBatch EveryNthBatch::take(int64_t number, const InterruptCheck& interrupt) {
  const int64_t wanted = first_ + number * stride_;
  // The batches of the other processes are skipped and not decoded.
  if (source_->is_in_order()) {
    // An interrupted batch was not taken, so `next_` does not count it.
    for (; next_ < wanted; ++next_) source_->take(next_, interrupt);
    next_ = wanted + 1;
  }
  return source_->take(wanted, interrupt);
}

}  // namespace stepop
