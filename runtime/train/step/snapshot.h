#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// While it lives, what a forward pass does to buffers of networks, and of modules that the
/// iterator tracks, is for the time being: afterwards each buffer, such as the running statistics
/// of batch normalization, has its values back.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Context& context);
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  struct Kept {
    at::Tensor buffer;
    at::Tensor values;
    int64_t version;
  };

  void keep(const torch::nn::Module& module);

  static void restore(const Kept& kept);

  std::vector<Kept> kept_;
};

/// A copy of what ops could change: buffers, random generators, and what an iterator tracks.
/// Parameters, their averages and optimizers are not copied: only training steps change them.
class Snapshot {
 public:
  /// `context` must outlive this.
  explicit Snapshot(const Context& context);

  /// Restores the state at construction.
  void restore() const;

 private:
  const Context& context_;
  State buffers_;
  State tensors_;
  std::vector<std::string> names_;
};

}  // namespace stepop
