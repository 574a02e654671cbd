#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepop::extensible {

/// A key of the state, such as `lq`, as a number that is known from the start.
struct Slot {
  int32_t index = -1;

  explicit operator bool() const { return index >= 0; }
  bool operator==(const Slot&) const = default;
};

/// What a key holds: nothing yet, a tensor, several, or a number.
using Item = std::variant<std::monostate, at::Tensor, std::vector<at::Tensor>, double>;

/// The keys that batches, injectors and losses of a training have.
class Keys {
 public:
  /// The slot of a name, made when it is new.
  Slot slot(std::string_view name);
  /// Without making one; none for a name that nobody has.
  Slot find(std::string_view name) const;
  const std::string& name(Slot slot) const { return names_[static_cast<size_t>(slot.index)]; }
  size_t size() const { return names_.size(); }

  /// Says of all keys that there are which of them anything reads. Before, all count as read.
  void set_read(std::vector<char> is_read) { is_read_ = std::move(is_read); }
  bool is_read(Slot slot) const {
    const auto index = static_cast<size_t>(slot.index);
    return index >= is_read_.size() || is_read_[index] != 0;
  }

 private:
  std::vector<std::string> names_;
  std::vector<char> is_read_;
};

/// What the keys hold while one batch, or a part of it, goes through the steps.
class StepState {
 public:
  explicit StepState(const Keys& keys) : keys_(&keys) {}

  /// Every key is empty again.
  void clear() { items_.assign(keys_->size(), {}); }

  bool has(Slot slot) const { return items_[at(slot)].index() != 0; }
  const Item& item(Slot slot) const { return items_[at(slot)]; }
  /// Throws Error with the key when it holds something else.
  const at::Tensor& tensor(Slot slot) const;
  const std::vector<at::Tensor>& tensors(Slot slot) const;
  /// A number, or a tensor with one element.
  double number(Slot slot) const;

  /// Whether anything reads the key: what is costly and read by nothing need not be computed.
  bool wants(Slot slot) const { return keys_->is_read(slot); }

  void set(Slot slot, Item item) { items_[at(slot)] = std::move(item); }
  void free(Slot slot) { items_[at(slot)] = {}; }
  /// Cuts what it holds off the graph that made it.
  void detach(Slot slot);

 private:
  static size_t at(Slot slot) { return static_cast<size_t>(slot.index); }
  [[noreturn]] void fail(Slot slot, const char* expected) const;

  const Keys* keys_;
  std::vector<Item> items_;
};

/// Where the training is, for injectors and losses.
struct Iteration {
  int64_t number = 0;       ///< Training steps that are complete: 0 in the first.
  bool is_training = true;  ///< Whether the step at hand trains; not in logs and evaluations.
  int64_t first = 0;        ///< The position in its batch of the first of the examples at hand.
  int64_t batch_size = 0;   ///< Of all parts of the batch.
};

}  // namespace stepop::extensible
