#pragma once

#include <span>
#include <string>

#include "runtime/tools/survey/survey.h"

namespace stepop {

/// A survey with its title: `datasets/train: Idx`.
struct TitledSurvey {
  std::string title;
  Survey survey;
};

/// The kept examples, each with its images and values, as the bytes of a PNG file; a video [T, C,
/// H, W] is shown as its first frame. At most `most` examples, evenly spread. Empty when no example
/// has an image.
std::string survey_sheet(const Survey& survey, size_t most = 36);

/// A complete page to browse: it needs no other file and no network. All text of the data is data,
/// never markup.
std::string survey_page(std::span<const TitledSurvey> surveys, const std::string& title);

}  // namespace stepop
