#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <string>
#include <vector>

namespace stepop {

/// Python's arithmetic on whole numbers, floats and truth values, such as `_operator.floordiv`:
/// torch.export writes with it what a code computes from sizes.
using SymbolicOperator = c10::IValue (*)(const std::vector<c10::IValue>& values);

/// The operator with a name of Python's that takes so many arguments, or null.
SymbolicOperator find_symbolic_operator(const std::string& name, size_t arguments);

}  // namespace stepop
