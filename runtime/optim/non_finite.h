#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/config/config.h"

namespace stepop {

/// What becomes of an update whose loss or gradients are NaN or infinite.
enum class OnNan {
  kStop,    ///< It is not made, and NonFinite is thrown.
  kSkip,    ///< It is not made; the training goes on.
  kIgnore,  ///< Nothing is checked: NaN and infinity reach the weights, as with torch.optim.
};

/// The key `on_nan` of a config: `stop`, the default, `skip` or `ignore`. Throws UsageError for
/// anything else.
OnNan read_on_nan(const Config& config);

/// A loss or a gradient was NaN or infinite, and the update was not made: parameters and state of
/// the optimizer are as before it, bit for bit. With several updates in a training step (a GAN),
/// those before this one were made, so the state is then not that of the step's beginning.
class NonFinite : public Error {
 public:
  NonFinite(std::string update, std::string subject, std::optional<double> value,
            int64_t global_step);

  /// The path of the update's config: `optimizer`.
  const std::string& update() const { return update_; }
  /// `the loss`, `the gradients of conv1.weight, conv1.bias and 8 more`, or `the norm of the
  /// gradients`. What a GPU found is only known to be in `the loss or a gradient`.
  const std::string& subject() const { return subject_; }
  /// The first number that is not finite; none when a GPU found it.
  const std::optional<double>& value() const { return value_; }
  /// Training steps that were complete; it was found in the one after them.
  int64_t global_step() const { return global_step_; }

  /// `nan in the loss in step 732`
  std::string finding() const;

 private:
  std::string update_;
  std::string subject_;
  std::optional<double> value_;
  int64_t global_step_;
};

}  // namespace stepop
