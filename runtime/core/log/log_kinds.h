#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// The kinds of logs that an integration takes, at `handlers` of its config: `[scalars, images]`;
/// all of them by default. Figures count as images.
class LogKinds {
 public:
  LogKinds() = default;
  /// Throws UsageError for another kind, with those that there are.
  explicit LogKinds(const Config& params);
  /// Declares `handlers` and reads it.
  void declare(Parameters& p, std::string_view about);

  /// Whether `kind` is taken: `scalars`, `images`, `audio`, `texts` or `histograms`.
  bool has(std::string_view kind) const;

 private:
  std::vector<std::string> kinds_;  ///< Empty: all.
};

}  // namespace stepop
