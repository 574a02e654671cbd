#pragma once

#include <string>
#include <vector>

#include "eval_out/eval_outputs.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// The tensors and texts of a batch as a table: key, type and shape, device, memory.
std::string describe_batch(const Batch& batch);

/// The last returned values of ops, one row each: the op's name, the key, the kind, type and shape.
class ReturnedValues {
 public:
  void set(const std::string& op, const Scalars& scalars);
  void set(const std::string& op, const Logs& logs);
  void set(const std::string& op, const EvalOutputs& outputs);

  /// The table as text; empty when nothing was returned.
  std::string table() const;

 private:
  using Row = std::vector<std::string>;

  OrderedMap<std::vector<Row>> rows_;  ///< By op.
};

/// A table of the networks' modules: every module with its class, its trainable and all parameters,
/// and the bytes of its parameters and buffers. Submodules are indented below their parents, whose
/// numbers include them. A tensor that is in a module twice counts once. Modules without tensors
/// are left out. Empty when there is no network.
std::string module_table(const Networks& networks);

}  // namespace stepop
