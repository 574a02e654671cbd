#pragma once

#include <string>
#include <vector>

#include "iterators/trainer/loss_model.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

/// What of a batch goes into a LossModel, and under which name:
///
///   inputs: {image: pixels}     # the model's image is the batch's pixels
///
/// Names that the model declares and that `inputs` leaves out are those of the batch. With `inputs`
/// the model gets nothing beside these; without it, a tensor of the batch that the model does not
/// declare is an error. Texts that it does not declare, such as names of files, are left out.
class ModelInputs {
 public:
  /// Reads `inputs`. Throws UsageError for a name that the model does not declare.
  ModelInputs(const Config& config, const LossModel& model);

  /// The batch as the model takes it. Throws Error, which names both sides, for a key that is
  /// missing or superfluous.
  Batch of(const Batch& batch) const;

 private:
  [[noreturn]] void fail(const Batch& batch) const;

  struct Input {
    std::string name;  ///< The model's,
    std::string key;   ///< and the batch's.
  };
  std::vector<Input> inputs_;  ///< Empty: the batch as it is.
  bool is_mapped_ = false;     ///< By `inputs`.
};

}  // namespace stepop
