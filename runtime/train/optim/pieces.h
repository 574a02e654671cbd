#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace stepop {

/// The size of the pieces in which a kernel that goes through many tensors at once, element by
/// element, has work for a whole GPU. LibTorch's kernels give 65,536 elements of a tensor to one
/// block of threads, so that small networks use a few of more than a hundred processors.
int64_t piece_size(const std::vector<at::Tensor>& tensors);

/// Whether the elements of all these tensors, of equal sizes, lie without gaps and in one order.
bool have_one_layout(const std::vector<at::Tensor>& tensors);

/// The elements of a tensor without gaps, in the order of its memory, as views of at most `size`
/// elements; the tensor itself if it has no more.
std::vector<at::Tensor> pieces_of(const at::Tensor& tensor, int64_t size);

}  // namespace stepop
