#include "runtime/core/measure/one_thread.h"

#include <ATen/Parallel.h>

// From the OpenMP runtime that LibTorch brings, if it brings one.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace stepop {

void compute_with_one_thread() {
  // LibTorch sets a thread's number on first use; asking for it first makes ours the last word.
  at::get_num_threads();
  if (omp_set_num_threads != nullptr) omp_set_num_threads(1);
}

}  // namespace stepop
