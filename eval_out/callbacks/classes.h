#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval_out/callbacks/callback.h"
#include "eval_out/callbacks/row_values.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// The true class of what no callback of classes counts, as in cross entropy.
inline constexpr int64_t kLeftOutClass = -100;

/// The parameters that name what Classes reads.
struct ClassKeys {
  std::string logits = "logits";
  std::string target = "class";

  void declare(Parameters& p) {
    declare(p, "the key of the scores [classes, ...], or of the predicted classes, as integers");
  }
  void declare(Parameters& p, std::string_view about_logits);
};

/// The parameter `class_names`; empty for those of the data.
struct ClassNames {
  std::vector<std::string> class_names = {};

  void declare(Parameters& p);
};

/// The predicted and the true class of each row, or of each of its pixels or tokens, read block by
/// block. The parameter `target` names the true classes, integers [...] in the file or in the
/// dataset's labels; `logits` names scores [classes, ...], or integers [...], the classes
/// themselves. What has the true class -100 does not count, and is left out.
class Classes {
 public:
  /// Throws Error, with the available keys, for missing keys and for other shapes. With
  /// `needs_scores`, classes in place of scores are an error.
  Classes(const CallbackArguments& arguments, const ClassKeys& keys, bool needs_scores = false);

  /// The number of classes: the number of scores, or else the largest class that occurs plus one.
  int64_t count() const { return count_; }
  /// All rows of the file.
  int64_t rows() const { return scores_.rows(); }
  /// The number of rows or pixels that count, once all were read, for a mean over them. Throws
  /// NoNumbers for none.
  double counted(int64_t number) const;
  int64_t rows_per_block() const;

  /// The N rows or pixels of some rows that count.
  struct Block {
    at::Tensor scores;     ///< [N, classes]; undefined when the file has classes only.
    at::Tensor predicted;  ///< int64 [N], the first of the largest scores.
    at::Tensor truth;      ///< int64 [N]

    int64_t rows() const { return truth.size(0); }
  };
  /// Throws Error with the row for a NaN among the scores, for a class outside [0, count()), and,
  /// without scores, for a class of a million or more.
  Block read(int64_t first, int64_t count) const;

 private:
  at::Tensor read_classes(const RowValues& source, int64_t first, int64_t count) const;

  RowValues truth_;
  RowValues scores_;
  bool has_scores_ = true;
  int64_t count_ = -1;  ///< -1 until it is known.
};

/// The names of `count` classes: those given, or else those that the config has for the key
/// `target`, or else the classes' numbers. Throws UsageError unless `count` names are given, or
/// none.
std::vector<std::string> class_names(const CallbackArguments& arguments, const ClassNames& given,
                                     const std::string& target, int64_t count);

/// What a callback that counts classes says of its parameters, once it is known how many classes
/// there are, by its registered name: found before a run begins. Throws UsageError.
using ClassCheck = std::function<void(const Config& params, int64_t classes)>;
OrderedMap<ClassCheck>& class_checks();

/// A ClassCheck of `class_names`.
void check_class_names(const Config& params, int64_t classes);

}  // namespace stepop

/// STEPOP_CLASS_CHECK(confusion_matrix, check_class_names);
#define STEPOP_CLASS_CHECK(name, check)                                                 \
  [[maybe_unused]] static const auto& STEPOP_CONCAT(stepop_class_check_, __COUNTER__) = \
      ::stepop::class_checks().set(#name, check)
