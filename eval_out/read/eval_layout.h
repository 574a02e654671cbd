#pragma once

#include <cstdint>
#include <vector>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_file.h"

namespace stepop {

// Lists the arrays of an open file of evaluation outputs, and checks that they follow the format.
// `rows` is the number of rows that the file claims to have; with `sizes`, the sizes that the
// arrays claim are compared with the sizes that the file stores. All functions need a Hdf5Lock, and
// throw Error with the array's name, the expected form and the found form.

/// The number of rows for which the file was made: the length of its index.
int64_t check_index_array(hid_t file, int64_t rows, Hdf5Sizes* sizes);

/// The file's labels, outputs and weights of labels, sorted by key; `shape` is the shape of an
/// example.
std::vector<EvalArray> list_eval_arrays(hid_t file, int64_t rows, Hdf5Sizes* sizes);

}  // namespace stepop
