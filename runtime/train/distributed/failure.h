#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// Why the processes end.
struct Failure {
  int rank = -1;  ///< Whose it is; -1 when a process is gone.
  int exit_code = 1;
  std::string text;
};

/// As it stands in the store that the processes share, below `kFailureKey`.
std::string to_text(const Failure& failure);
/// What is no such text is itself the reason. The exit code is never that of a success.
Failure failure_of(const std::string& text);

inline constexpr const char* kFailureKey = "failure";

// Values of c10d's store.

inline std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}
inline std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace stepop
