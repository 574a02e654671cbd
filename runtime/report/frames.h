#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stepop {

/// Files of one name over the steps of a run: the pictures of a log op, the text of a callback.
struct FrameSeries {
  std::string title;                     ///< `train/log_op/input`
  std::map<int64_t, std::string> paths;  ///< By step.
  size_t left_out = 0;                   ///< Of them, because all together are too large.
};

/// What a run has to show beside numbers.
struct RunFrames {
  std::vector<FrameSeries> logged;     ///< `train/<split>/<op>/**_<step>.png`
  std::vector<FrameSeries> evaluated;  ///< PNG files that callbacks wrote beside the outputs.
  std::vector<FrameSeries> texts;      ///< Text files that they wrote.
};

/// Finds them by their names; of two evaluations of one step the later start counts. What is
/// superseded is left out.
RunFrames find_frames(const std::string& run);

/// Thins out the series evenly, their first and last files staying, until all together take at most
/// `bytes`; what is too large even so loses the first ones, then whole series.
void fit_frames(std::vector<FrameSeries>& series, int64_t bytes);

}  // namespace stepop
