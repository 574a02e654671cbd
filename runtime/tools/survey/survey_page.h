#pragma once

#include <span>
#include <string>

#include "runtime/tools/survey/survey.h"

namespace stepop {

/// A survey and what stands above it: `datasets/train: Idx`.
struct TitledSurvey {
  std::string title;
  Survey survey;
};

/// The examples that were kept, each with its images and values, as the bytes of a PNG file; of a
/// video [T, C, H, W] the first frame. At most `most` examples, evenly spread. Empty when none of
/// them has an image.
std::string survey_sheet(const Survey& survey, size_t most = 36);

/// A page to browse, whole: it needs no other file and no network. All text of the data is data to
/// it, never markup.
std::string survey_page(std::span<const TitledSurvey> surveys, const std::string& title);

}  // namespace stepop
