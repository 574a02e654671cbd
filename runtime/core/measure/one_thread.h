#pragma once

namespace stepop {

/// From now on, LibTorch computations in this thread start no other threads: the cores belong to
/// the training, and a second multi-threaded thread would take them. Other threads are not
/// affected.
void compute_with_one_thread();

}  // namespace stepop
