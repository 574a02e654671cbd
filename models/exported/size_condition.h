#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/exported/symbolic_operators.h"

namespace stepop {

/// A condition on the sizes of a network's inputs, in Python as torch.export writes it:
/// `(L['image'].size()[3] % 8) == 0 and max(1, L['x'].size()[0]) <= 4`.
class SizeCondition {
 public:
  /// Holds always.
  SizeCondition() = default;
  /// `inputs` are the names of the inputs in their order. Throws Error for code of another form.
  SizeCondition(const std::string& code, const std::vector<std::string>& inputs);

  /// Throws Error where a size is divided by 0.
  bool holds(const std::vector<at::Tensor>& inputs) const;

  /// A number, a size, or an operator with its arguments.
  struct Term {
    c10::IValue number = true;
    int64_t input = -1;  ///< Of a size: which input, and its dimension.
    int64_t dimension = 0;
    SymbolicOperator call = nullptr;
    std::vector<Term> arguments = {};
  };

 private:
  Term term_;
};

}  // namespace stepop
