#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepop::extensible {

/// A key of the state, such as `lq`, as a number that is assigned at the start.
struct Slot {
  int32_t index = -1;

  explicit operator bool() const { return index >= 0; }
  bool operator==(const Slot&) const = default;
};

/// The value of a key: nothing yet, a tensor, several tensors, or a number.
using Item = std::variant<std::monostate, at::Tensor, std::vector<at::Tensor>, double>;

/// The keys of the batches, injectors and losses of a training.
class Keys {
 public:
  /// The slot of a name; a new name gets a new slot.
  Slot slot(std::string_view name);
  /// The slot of a name; empty for an unknown name.
  Slot find(std::string_view name) const;
  const std::string& name(Slot slot) const { return names_[static_cast<size_t>(slot.index)]; }
  size_t size() const { return names_.size(); }

  /// Sets for all keys whether anything reads them. Until then, all keys count as read.
  void set_read(std::vector<char> is_read) { is_read_ = std::move(is_read); }
  bool is_read(Slot slot) const {
    const auto index = static_cast<size_t>(slot.index);
    return index >= is_read_.size() || is_read_[index] != 0;
  }

 private:
  std::vector<std::string> names_;
  std::vector<char> is_read_;
};

/// The values of the keys while one batch, or a part of a batch, runs through the steps.
class StepState {
 public:
  explicit StepState(const Keys& keys) : keys_(&keys) {}

  /// Empties all keys.
  void clear() { items_.assign(keys_->size(), {}); }

  bool has(Slot slot) const { return items_[at(slot)].index() != 0; }
  const Item& item(Slot slot) const { return items_[at(slot)]; }
  /// Throws Error with the key when it holds another kind of value.
  const at::Tensor& tensor(Slot slot) const;
  const std::vector<at::Tensor>& tensors(Slot slot) const;
  /// A number, or a tensor with one element.
  double number(Slot slot) const;

  /// Whether anything reads the key; costly values that nothing reads need not be computed.
  bool wants(Slot slot) const { return keys_->is_read(slot); }

  void set(Slot slot, Item item) { items_[at(slot)] = std::move(item); }
  void free(Slot slot) { items_[at(slot)] = {}; }
  /// Detaches the key's value from its graph.
  void detach(Slot slot);

 private:
  static size_t at(Slot slot) { return static_cast<size_t>(slot.index); }
  [[noreturn]] void fail(Slot slot, const char* expected) const;

  const Keys* keys_;
  std::vector<Item> items_;
};

/// The current iteration, for injectors and losses.
struct Iteration {
  int64_t number = 0;       ///< The number of complete training steps: 0 in the first.
  bool is_training = true;  ///< Whether the step trains; false in evaluations and their logs.
  int64_t first = 0;        ///< The position in the batch of the current part's first example.
  int64_t batch_size = 0;   ///< The size of the whole batch.
};

}  // namespace stepop::extensible
