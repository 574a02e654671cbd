#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// Why the processes end.
struct Failure {
  int rank = -1;  ///< The rank of the process that failed; -1 when a process is gone.
  int exit_code = 1;
  std::string text;
};

/// The text of a failure in the processes' common store, below `kFailureKey`.
std::string to_text(const Failure& failure);
/// The failure in `text`; any other text becomes the reason itself. The exit code is never 0.
Failure failure_of(const std::string& text);

inline constexpr const char* kFailureKey = "failure";

// For values of c10d's store.

inline std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}
inline std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace stepop
