#pragma once

#include <string>
#include <vector>

#include "runtime/tools/survey/survey.h"

namespace stepop {

/// A table of the keys with types, shapes, ranges and statistics; the time of an example; a few
/// examples; the bad examples. `width` is the terminal's width.
std::string survey_text(const Survey& survey, const std::string& title, size_t width);

/// A value in few words: `3`, `0.25`, `[0.1, 0.2]`, `[7, 0, 3, 3, 1, 9, ..]`, `float32 [3, 8, 8]`.
std::string short_value(const at::Tensor& value);
/// A text in one line of at most `most` bytes.
std::string short_text(const std::string& text, size_t most = 40);

/// `17, 204, 3077`: the first `most` indices, and the number of further indices.
std::string index_list(const std::vector<int64_t>& indices, size_t most);

}  // namespace stepop
