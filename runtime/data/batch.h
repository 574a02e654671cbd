#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// One example of a dataset: tensors and texts by key. A slash in a key nests:
/// `target/class`. An image is a float tensor [C, H, W] in [-1, 1], a class an int64 [].
struct Example {
  OrderedMap<at::Tensor> tensors;
  OrderedMap<std::string> texts;
};

/// Examples side by side: every tensor gains a first dimension B, every text becomes a list of B.
/// Copies share the tensors.
class Batch {
 public:
  Batch() = default;
  Batch(OrderedMap<at::Tensor> tensors, OrderedMap<std::vector<std::string>> texts,
        std::vector<int64_t> indices)
      : tensors_(std::move(tensors)), texts_(std::move(texts)), indices_(std::move(indices)) {}

  /// The tensor at a key path; throws Error with the available keys.
  const at::Tensor& operator[](std::string_view key) const;
  const std::vector<std::string>& text(std::string_view key) const;
  bool contains(std::string_view key) const { return tensors_.contains(key); }

  /// The part below a key: `batch.at("target")["class"]` is `batch["target/class"]`.
  Batch at(std::string_view key) const;

  /// The examples from `begin` to before `end`, without a copy. Throws Error for a tensor whose
  /// first dimension is not B.
  Batch rows(int64_t begin, int64_t end) const;

  /// The number of examples, B.
  int64_t size() const { return static_cast<int64_t>(indices_.size()); }
  /// Each example's index in its dataset.
  const std::vector<int64_t>& indices() const { return indices_; }

  /// Sets the tensor at `key`; its first dimension must be B.
  void set(std::string_view key, at::Tensor tensor) { tensors_.set(key, std::move(tensor)); }
  void set_indices(std::vector<int64_t> indices) { indices_ = std::move(indices); }

  const OrderedMap<at::Tensor>& tensors() const { return tensors_; }
  const OrderedMap<std::vector<std::string>>& texts() const { return texts_; }

  /// The same batch with its tensors on `device`. A copy from pinned memory to a device may still
  /// be under way, in the order of the device's stream; any other copy is complete.
  Batch to(const at::Device& device) const;
  /// The same batch with the channels of its images, floats [B, C, H, W], last in memory; shapes
  /// stay as they are (torch.channels_last).
  Batch channels_last() const;

 private:
  OrderedMap<at::Tensor> tensors_;
  OrderedMap<std::vector<std::string>> texts_;
  std::vector<int64_t> indices_;
};

/// Stacks examples. Throws Error with the key and the dataset's indices when the keys, shapes,
/// types or devices of two examples differ.
Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices);

}  // namespace stepop
