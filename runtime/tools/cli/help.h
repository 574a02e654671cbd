#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepop {

struct Command;

/// A flag of our own, as the parser and the help know it.
struct Flag {
  char letter;  ///< 0: none
  std::string name;
  /// kEach: one value, as often as the flag is given. kUnlessValue: with a value it is no flag, but
  /// sets the key of its name: `--batch_size 64`.
  enum class Takes { kNothing, kValue, kValues, kEach, kOptionalBool, kUnlessValue } takes;
  std::string about;
  std::string_view command = {};  ///< The only one that takes it, in the place of others like it.
};
const std::vector<Flag>& flags();

/// What `--help` prints; with a command what it is for and its own flags.
std::string help_text();
std::string help_text(const Command& command);

/// What `--version` prints: stepop, LibTorch, HDF5.
std::string version_text();

}  // namespace stepop
