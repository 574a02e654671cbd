#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stepop {

/// A confusion matrix as the bytes of a PNG file: a row for each true class, a column for each
/// predicted one. `counts` is int64 [classes, classes] and `shares`, float64, has each row divided
/// by its sum, which is what the colours show. Cells of up to 30 classes have their count, or with
/// `show_shares` their share, written on them; a cell without examples is left blank.
std::string matrix_picture(const at::Tensor& counts, const at::Tensor& shares,
                           const std::vector<std::string>& names, bool show_shares);

}  // namespace stepop
