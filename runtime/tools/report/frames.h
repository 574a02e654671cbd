#pragma once

#include <cstdint>
#include <limits>
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
  std::vector<FrameSeries> logged;        ///< `train/<split>/<op>/**_<step>.png` and `.jpg`
  std::vector<FrameSeries> logged_texts;  ///< The same as .txt.
  std::vector<FrameSeries> evaluated;     ///< Pictures that callbacks wrote beside the outputs.
  std::vector<FrameSeries> texts;         ///< Text files that they wrote.
};

/// Finds them by their names; of two evaluations of one step the later start counts. What is
/// superseded is left out.
RunFrames find_frames(const std::string& run);

/// Thins out the series evenly, their first and last files staying, until all together take at most
/// `bytes`; what is too large even so loses the first ones, then the largest of the last ones. A
/// file that is larger by itself is left out at once; of each file `most_of_one` bytes are shown.
void fit_frames(std::vector<FrameSeries>& series, int64_t bytes,
                int64_t most_of_one = std::numeric_limits<int64_t>::max());

}  // namespace stepop
