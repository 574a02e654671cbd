#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tools/report/frames.h"
#include "runtime/tools/report/report_json.h"

namespace stepop {

// A report's data on pictures and texts.

inline constexpr size_t kMostTextBytes = 65'536;  ///< Of one text; longer texts are cut.

/// The text, or its first 64 KB and a note.
std::string cut_text(const std::string& text);

/// `{"title", "frames": [{"step", "data"}], "left_out"}` of each series that has a file: the
/// pictures and sounds as base64, the texts cut. A file that cannot be read is empty.
Json frames_json(const std::vector<FrameSeries>& all);
Json text_frames_json(const std::vector<FrameSeries>& all);

}  // namespace stepop
