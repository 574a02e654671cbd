#pragma once

#include <string>
#include <vector>

#include "runtime/iterator/context.h"

namespace stepop {

/// A copy of what ops could change besides parameters, their averages and optimizers, which only
/// training steps change: buffers, random generators, and what an iterator tracks.
class Snapshot {
 public:
  /// `context` must outlive this.
  explicit Snapshot(const Context& context);

  /// Makes everything as it was when this was made.
  void restore() const;

 private:
  const Context& context_;
  State buffers_;
  State tensors_;
  std::vector<std::string> names_;
};

}  // namespace stepop
