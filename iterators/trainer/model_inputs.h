#pragma once

#include <string>
#include <vector>

#include "iterators/trainer/loss_model.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

/// Selects the inputs of a LossModel from a batch, and renames them:
///
///   inputs: {image: pixels}     # the model's image is the batch's pixels
///
/// A declared name that `inputs` leaves out is the batch's own key. With `inputs`, the model gets
/// no further tensors; without, a tensor of the batch that the model does not declare is an error.
/// Texts that the model does not declare, such as file names, are left out.
class ModelInputs {
 public:
  /// Reads `inputs`. Throws UsageError for a name that the model does not declare.
  ModelInputs(const Config& config, const LossModel& model);

  /// The batch with the model's inputs. Throws Error, with the names on both sides, for a missing
  /// or superfluous key.
  Batch of(const Batch& batch) const;

 private:
  [[noreturn]] void fail(const Batch& batch) const;

  struct Input {
    std::string name;  ///< The model's name.
    std::string key;   ///< The batch's key.
  };
  std::vector<Input> inputs_;  ///< Empty: the whole batch.
  bool is_mapped_ = false;     ///< The config has `inputs`.
};

}  // namespace stepop
