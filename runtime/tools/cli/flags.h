#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepop {

/// One of our own flags, for the parser and the help. Any other `--path/key` sets a key of the
/// config.
struct Flag {
  /// kEach: one value each time that the flag is given. kUnlessValue: with a value it is no flag,
  /// but sets the key of the same name: `--batch_size 64`.
  enum class Takes { kNothing, kValue, kValues, kEach, kOptionalBool, kUnlessValue };

  char letter;  ///< 0: none
  std::string name;
  Takes takes;
  std::string about;
  /// Stores the given values; a switch gets `true` or `false`.
  std::function<void(const std::vector<std::string>&)> set;

  /// Whether a word is this flag: `-o`, `--output`.
  bool is(const std::string& word) const;
};

/// The names of a flag: `--table`, or `-o` and `--output`.
struct FlagName {
  FlagName(const char* word) : name(word) {}  // NOLINT(google-explicit-constructor)
  FlagName(char short_name, const char* word) : letter(short_name), name(word) {}

  char letter = 0;
  const char* name;
};

/// Flags with the variables that receive their values; the variables must outlive this.
class Flags {
 public:
  void add(FlagName name, bool& target, std::string about,
           Flag::Takes takes = Flag::Takes::kNothing);
  void add(FlagName name, std::optional<std::string>& target, std::string about);
  /// Passes the flag's one value to `set`.
  void add(FlagName name, std::function<void(const std::string&)> set, std::string about);
  void add(FlagName name, std::vector<std::string>& target, std::string about,
           Flag::Takes takes = Flag::Takes::kEach);

  const std::vector<Flag>& all() const { return all_; }

 private:
  std::vector<Flag> all_;
};

}  // namespace stepop
