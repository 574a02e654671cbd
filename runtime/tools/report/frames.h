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
  size_t left_out = 0;                   ///< Omitted files, since all together are too large.
};

/// A run's pictures and texts.
struct RunFrames {
  std::vector<FrameSeries> logged;        ///< `train/<split>/<op>/**_<step>.png`, .jpg, .wav
  std::vector<FrameSeries> logged_texts;  ///< The same as .txt.
  std::vector<FrameSeries> evaluated;     ///< The same that callbacks wrote next to the outputs.
  std::vector<FrameSeries> texts;         ///< Text files that callbacks wrote.
};

/// Finds the files by name; if one step has two evaluations, the later start counts. Superseded
/// files are left out.
RunFrames find_frames(const std::string& run);

/// Thins out the series evenly, keeping their first and last files, until all together take at most
/// `bytes`; if needed, drops the first files, then the largest last files. A file that is too large
/// by itself is left out at once; each file counts with at most `most_of_one` bytes.
void fit_frames(std::vector<FrameSeries>& series, int64_t bytes,
                int64_t most_of_one = std::numeric_limits<int64_t>::max());

}  // namespace stepop
