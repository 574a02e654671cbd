#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/batch.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/python/python_server.h"

namespace stepop {

/// The classes that a dataset in Python names, with the numbers of the training: its own depend on
/// the files that it has found.
class PythonClasses {
 public:
  PythonClasses() = default;
  PythonClasses(const Config& params, const PythonFacts& facts, const std::string& object) {
    const bool has_unknown = read_unknown_classes(params);
    for (const auto& [key, names] : facts.classes) {
      numbers_.emplace_back(key, ClassRenumbering(params, key, names, object, has_unknown));
    }
  }

  /// Gives the classes of a batch their numbers. Throws Error for a name that is no class.
  void apply(Batch& batch) const {
    for (const auto& [key, classes] : numbers_) {
      if (classes.is_needed() && batch.contains(key)) batch.set(key, classes.apply(batch[key]));
    }
  }
  /// The same for the tensors of an example.
  void apply(OrderedMap<at::Tensor>& tensors) const {
    for (const auto& [key, classes] : numbers_) {
      at::Tensor* const value = classes.is_needed() ? tensors.find(key) : nullptr;
      if (value != nullptr) *value = classes.apply(*value);
    }
  }

  /// Which names look alike, and whether the training's are not known; empty for none.
  std::string notice() const {
    std::string text;
    for (const auto& [key, classes] : numbers_) {
      const std::string one = classes.notice({});
      if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, ClassRenumbering>> numbers_;
};

}  // namespace stepop
