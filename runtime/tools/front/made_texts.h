#pragma once

namespace stepop {

/// The output of a command line that is the same in each run of a build: the help, the completion.
struct MadeText {
  const char* words;  ///< Each with a line break behind it; null behind the last text.
  const char* text;
};

/// Made in the build, by make_texts.cpp.
extern const MadeText kMadeTexts[];

/// The registered_components(), each with a line break behind it, and the config_schema() of them
/// that is not strict; made there too.
extern const char* const kMadeComponents;
extern const char* const kMadeSchema;

}  // namespace stepop
