#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/batch.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/notice.h"

namespace stepop {

/// The ClassRenumbering of each key for which a source other than the training's files has numbers
/// and names: a dataset in Python, the outputs of an evaluation.
class ClassRenumberings {
 public:
  ClassRenumberings() = default;
  /// `names` by key, in the order of their numbers in `source`.
  ClassRenumberings(const Config& params, const OrderedMap<std::vector<std::string>>& names,
                    const std::string& source)
      : params_(params) {
    const bool has_unknown = read_unknown_classes(params);
    for (const auto& [key, of_key] : names) {
      numbers_.emplace_back(key, ClassRenumbering(params, key, of_key, source, has_unknown));
    }
  }

  /// Gives the classes of a batch their numbers. Throws Error for a name that is no class.
  void apply(Batch& batch) const {
    for (const auto& [key, classes] : numbers_) {
      if (classes.is_needed() && batch.contains(key)) batch.set(key, classes.apply(batch[key]));
    }
  }
  /// The same for the tensors of an example or of a batch.
  void apply(OrderedMap<at::Tensor>& tensors) const {
    for (const auto& [key, classes] : numbers_) {
      at::Tensor* const value = classes.is_needed() ? tensors.find(key) : nullptr;
      if (value != nullptr) *value = classes.apply(*value);
    }
  }
  /// The same for numbers under `key`, which may be undefined.
  at::Tensor apply(std::string_view key, const at::Tensor& numbers) const {
    const ClassRenumbering* const classes = find(key);
    return classes != nullptr && numbers.defined() ? classes->apply(numbers) : numbers;
  }

  bool contains(std::string_view key) const { return find(key) != nullptr; }

  /// Which names look alike, whether the training's are not known, and which of `keys`, those of
  /// whole numbers, have names in the training alone.
  std::string notice(const std::vector<std::string>& keys) const {
    std::vector<std::string> notices;
    for (const auto& [key, classes] : numbers_) notices.push_back(classes.notice({}));
    for (const auto& key : keys) {
      if (!contains(key)) notices.push_back(plain_numbers_notice(params_, key));
    }
    return joined_notices(notices);
  }
  /// The same where any key may have whole numbers.
  std::string notice() const {
    std::vector<std::string> keys;
    for (const auto& [key, names] : all_class_names(params_)) keys.push_back(key);
    return notice(keys);
  }

 private:
  const ClassRenumbering* find(std::string_view key) const {
    for (const auto& [name, classes] : numbers_) {
      if (name == key) return &classes;
    }
    return nullptr;
  }

  Config params_;
  std::vector<std::pair<std::string, ClassRenumbering>> numbers_;
};

}  // namespace stepop
