#include "runtime/train/optim/pieces.h"

#include <algorithm>

namespace stepop {
namespace {

/// Of one launch a kernel with four lists takes 48 tensors.
constexpr int64_t kPieces = 40;
constexpr int64_t kSmallest = 4096;

}  // namespace

int64_t piece_size(const std::vector<at::Tensor>& tensors) {
  int64_t all = 0;
  for (const auto& tensor : tensors) all += tensor.numel();
  // A multiple of the smallest, as kernels load several numbers at once from even addresses.
  return std::max(kSmallest, (all / kPieces + kSmallest - 1) / kSmallest * kSmallest);
}

bool have_one_layout(const std::vector<at::Tensor>& tensors) {
  return std::ranges::all_of(tensors, [&](const at::Tensor& tensor) {
    return tensor.is_non_overlapping_and_dense() && tensor.strides() == tensors.front().strides();
  });
}

std::vector<at::Tensor> pieces_of(const at::Tensor& tensor, int64_t size) {
  const int64_t count = tensor.numel();
  if (count <= size) return {tensor};
  const at::Tensor flat = tensor.as_strided({count}, {1});
  std::vector<at::Tensor> pieces;
  for (int64_t begin = 0; begin < count; begin += size) {
    pieces.push_back(flat.narrow(0, begin, std::min(size, count - begin)));
  }
  return pieces;
}

}  // namespace stepop
