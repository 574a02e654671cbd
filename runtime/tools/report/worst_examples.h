#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"

namespace stepop {

/// One example of an evaluation.
struct WorstExample {
  int64_t index = 0;                     ///< The index in the dataset.
  double loss = 0;                       ///< NaN counts as the worst.
  std::vector<std::string> values = {};  ///< One for each of WorstExamples::keys.
  /// PNG files, one for each of `picture_keys`; empty for an omitted picture.
  std::vector<std::string> pictures = {};
};

/// The examples of an evaluation with the greatest loss, worst first.
struct WorstExamples {
  std::string loss;  ///< The label's key: `labels/loss`; empty without one.
  std::vector<std::string> keys;
  std::vector<std::string> picture_keys;
  std::vector<WorstExample> examples;
  size_t pictures_left_out = 0;  ///< Omitted because all together are too large.
};

/// Finds the examples by the first label with one number per example and `loss` or `error` in its
/// name. Each has its other labels and outputs of one number, and the index of the largest number
/// in outputs called logits, scores or probabilities. Pictures are outputs [1 or 3, H, W] or [H, W,
/// 1 or 3], uint8 or floating-point in [-1, 1], with sides of 8 to 512 pixels, worst examples
/// first, up to `picture_bytes`. Long texts are cut. Reads the labels in blocks.
WorstExamples find_worst_examples(const EvalFile& file, size_t count,
                                  int64_t picture_bytes = 3'000'000);

}  // namespace stepop
