#pragma once

#include "runtime/core/base/interrupt.h"
#include "runtime/train/iterator/iterator.h"

namespace stepop {

/// Measures the statistics of batch normalization for the averages that evaluations use, where
/// these lack them: as torch.optim.swa_utils.update_bn, the mean over the batches of one epoch of
/// the training split, or of its first `swa/batch_norm_batches`, by `step_op` in training mode. A
/// function of the averages, the seed and the step; random numbers, buffers and what is tracked are
/// then as they were. Does nothing where nothing is to be measured.
///
/// Throws Error for what the dataset or `step_op` threw, and what `interrupt` throws between
/// batches; the averages then still lack them.
void measure_batch_norm(Iterator& iterator, const Context& context, Position& position,
                        const InterruptCheck& interrupt);

}  // namespace stepop
