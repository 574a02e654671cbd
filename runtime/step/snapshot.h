#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/iterator/context.h"

namespace stepop {

/// While it lives, what a forward pass does to buffers of networks, such as running statistics of
/// batch normalization, is for the time being: afterwards each has its values back.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Networks& networks);
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  struct Kept {
    at::Tensor buffer;
    at::Tensor values;
    int64_t version;
  };

  std::vector<Kept> kept_;
};

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
