// Which operations of the device take half precision within autocast: those of CUDA.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

// LibTorch's table has a column for each of its own devices by such macros.
#define IN_HALF(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, lower_precision_fp)
#define IN_SINGLE(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, fp32)
#define BY_DTYPE(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTED(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, AutocastHPU, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastHPU, m) {
  AT_FORALL_LOWER_PRECISION_FP(IN_HALF)
  AT_FORALL_FP32(IN_SINGLE)
  AT_FORALL_FP32_SET_OPT_DTYPE(BY_DTYPE)
  AT_FORALL_PROMOTE(PROMOTED)
}
