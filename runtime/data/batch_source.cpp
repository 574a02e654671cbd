#include "runtime/data/batch_source.h"

#include <vector>

namespace stepop {

TakenBatch DatasetBatches::take(int64_t number, const InterruptCheck& /*interrupt*/) {
  return {.load = [this, number] {
    const std::vector<int64_t> indices = order_.indices(number);
    std::vector<Random> randoms = order_.randoms(number);
    return load_batch(dataset_, indices, randoms);
  }};
}

}  // namespace stepop
