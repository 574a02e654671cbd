#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"

namespace stepop {

/// The weights of classes in a loss, from the key `class_weights`: a list; or `balanced`, n / (C *
/// count) of each class in the training split, scikit-learn's `compute_class_weight`. A member of
/// an iterator.
///
/// Balanced weights are counted once, when a batch first asks for them, and are kept in
/// checkpoints. Where the dataset has the classes of all examples at hand, as for samplers, no
/// example is read; else, as for masks, every example of the split is read.
class ClassWeights {
 public:
  /// `target` is the key of the classes in an example; `ignore` is not counted, nor is -100. Throws
  /// UsageError for anything but a list of numbers of 0 or more, or `balanced`. `context` must
  /// outlive this.
  ClassWeights(const Context& context, std::string target, int64_t ignore);
  ClassWeights(const ClassWeights&) = delete;
  ClassWeights& operator=(const ClassWeights&) = delete;

  /// The weights for logits [B, C, ...], [C], of their type and on their device; undefined without
  /// the key. Throws UsageError for another number of weights, and for a class that the training
  /// split does not have.
  const at::Tensor& of(const at::Tensor& logits);

 private:
  at::Tensor balanced(int64_t classes) const;
  void count_examples(std::vector<double>& counts) const;

  const Context& context_;
  std::string target_;
  int64_t ignore_;
  bool is_balanced_ = false;
  at::Tensor weights_;  ///< float64 on the CPU; undefined until they are known.
  at::Tensor used_;     ///< The same in the type and on the device of logits.
};

}  // namespace stepop
