#pragma once

#include <cstdint>
#include <vector>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_file.h"

namespace stepop {

// Which arrays an open file of evaluation outputs has, and that they are as the format has them.
// `rows` is how many rows the file says that it has; with `sizes`, what the arrays claim to hold is
// compared with what the file stores. All functions need a Hdf5Lock, and throw Error with the
// array's name, what was expected and what was found.

/// The rows that the file was made for: the length of its index.
int64_t check_index_array(hid_t file, int64_t rows, Hdf5Sizes* sizes);

/// Its labels and outputs, sorted by key; `shape` is that of an example.
std::vector<EvalArray> list_eval_arrays(hid_t file, int64_t rows, Hdf5Sizes* sizes);

}  // namespace stepop
