#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"

namespace stepop {

/// One example of an evaluation.
struct WorstExample {
  int64_t index = 0;                     ///< In the dataset.
  double loss = 0;                       ///< NaN is the worst.
  std::vector<std::string> values = {};  ///< One for each of WorstExamples::keys.
  /// PNG files, one for each of `picture_keys`; empty for one that was left out.
  std::vector<std::string> pictures = {};
};

/// The examples of an evaluation with the greatest loss, the worst one first.
struct WorstExamples {
  std::string loss;  ///< The label's key: `labels/loss`. Empty when there is none.
  std::vector<std::string> keys;
  std::vector<std::string> picture_keys;
  std::vector<WorstExample> examples;
  size_t pictures_left_out = 0;  ///< As all together were too large.
};

/// Finds them by the first label, one number an example, with `loss` or `error` in its name. What
/// is shown of each: its other labels and outputs of one number, and the place of the largest one
/// of outputs called logits, scores or probabilities; pictures: outputs [1 or 3, H, W] or [H, W, 1
/// or 3], uint8 or floating-point in [-1, 1], of 8 to 512 pixels a side, up to `picture_bytes`,
/// those of the worst first. Long texts are cut. Reads the labels in blocks.
WorstExamples find_worst_examples(const EvalFile& file, size_t count,
                                  int64_t picture_bytes = 3'000'000);

}  // namespace stepop
