#include "runtime/core/measure/one_thread.h"

#include <ATen/Parallel.h>

// A function of LibTorch's OpenMP runtime, if LibTorch has one.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace stepop {

void compute_with_one_thread() {
  // LibTorch sets a thread's number on first use; this call makes sure that our number comes last.
  at::get_num_threads();
  if (omp_set_num_threads != nullptr) omp_set_num_threads(1);
}

}  // namespace stepop
