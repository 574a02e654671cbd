#pragma once

#include <cstdint>
#include <memory>

#include "eval_out/write/eval_arrays.h"

namespace stepop {

/// Creates a ragged array for `rows` rows, with room for `expected_values` values.
std::unique_ptr<EvalArrayWriter> create_ragged(hid_t file, const EvalArray& array, int64_t rows,
                                               int64_t expected_values);

/// Opens one that has `rows` rows, to go on behind them.
std::unique_ptr<EvalArrayWriter> open_ragged(hid_t file, const EvalArray& array, int64_t rows);

}  // namespace stepop
