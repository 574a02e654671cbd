#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// How a line of `Dataset::notice` begins that is shown as a warning.
inline constexpr std::string_view kWarning = "warning: ";

/// A stream that has something to say at the start of a run, as `Dataset::notice`; found by
/// dynamic_cast.
class StreamNotice {
 public:
  virtual ~StreamNotice() = default;
  virtual std::string notice() const = 0;
};

/// The lines of several notices, each line once.
std::string joined_notices(const std::vector<std::string>& notices);

/// The lines of notices without and with a warning, which loses its kWarning.
struct Notices {
  std::string infos;
  std::string warnings;
};
Notices split_notices(const std::string& notices);

}  // namespace stepop
