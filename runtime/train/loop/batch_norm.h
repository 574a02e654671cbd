#pragma once

#include "runtime/core/base/interrupt.h"
#include "runtime/train/iterator/iterator.h"

namespace stepop {

/// Measures the statistics of batch normalization for the averages that evaluations use, where the
/// averages lack them. Like torch.optim.swa_utils.update_bn, it takes the mean over the batches of
/// one epoch of the training split, or of its first `swa/batch_norm_batches` batches, by `step_op`
/// in training mode. The result depends only on the averages, the seed and the step; random
/// numbers, buffers and tracked objects are restored. Does nothing where no statistics are missing.
/// Throws Error for exceptions of the dataset or `step_op`, and whatever `interrupt` throws between
/// batches; the averages then still lack them.
void measure_batch_norm(Iterator& iterator, const Context& context, Position& position,
                        const InterruptCheck& interrupt);

}  // namespace stepop
