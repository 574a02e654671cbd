#pragma once

#include <string>
#include <vector>

#include "eval_out/eval_outputs.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// The tensors and texts of a batch as a table for people: key, type and shape, device, memory.
std::string describe_batch(const Batch& batch);

/// What ops returned last, one row a value: the op's name, the key, what it is, type and shape.
class ReturnedValues {
 public:
  void set(const std::string& op, const Scalars& scalars);
  void set(const std::string& op, const Logs& logs);
  void set(const std::string& op, const EvalOutputs& outputs);

  /// A table for people; empty when nothing was returned.
  std::string table() const;

 private:
  using Row = std::vector<std::string>;

  OrderedMap<std::vector<Row>> rows_;  ///< By op.
};

/// A table for people of what the networks consist of: every module with its class, its parameters
/// that are trained and all, and the bytes of its parameters and buffers; modules within others are
/// indented below them and counted in them. A tensor that stands in a module twice counts once.
/// Modules without any tensor are left out. Empty when there is no network.
std::string module_table(const Networks& networks);

}  // namespace stepop
