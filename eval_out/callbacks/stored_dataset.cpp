#include "eval_out/callbacks/stored_dataset.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace stepop {

const Dataset& StoredDataset::built() const {
  std::call_once(once_, [this] {
    try {
      if (config_.has(path_)) {
        dataset_ = datasets().build(config_, path_);
      } else {
        problem_ = fmt::format("the dataset is not there: the stored config has no {}", path_);
      }
    } catch (const std::exception& error) {
      problem_ = fmt::format("the dataset cannot be built: {}", error_text(error));
    }
  });
  if (dataset_ == nullptr) throw Error(problem_);
  return *dataset_;
}

}  // namespace stepop
