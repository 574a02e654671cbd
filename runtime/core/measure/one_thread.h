#pragma once

namespace stepop {

/// From here on what this thread computes with LibTorch starts no other threads: the cores belong
/// to the training, and a thread beside it that used several would take them. Others are not
/// affected.
void compute_with_one_thread();

}  // namespace stepop
