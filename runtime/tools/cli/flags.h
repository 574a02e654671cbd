#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepop {

/// A flag of our own, as the parser and the help know it. Every other `--path/key` sets a key of
/// the config.
struct Flag {
  /// kEach: one value, as often as the flag is given. kUnlessValue: with a value it is no flag, but
  /// sets the key of its name: `--batch_size 64`.
  enum class Takes { kNothing, kValue, kValues, kEach, kOptionalBool, kUnlessValue };

  char letter;  ///< 0: none
  std::string name;
  Takes takes;
  std::string about;
  /// Takes the values that were given; of a switch `true` or `false`.
  std::function<void(const std::vector<std::string>&)> set;

  /// Whether a word is this flag: `-o`, `--output`.
  bool is(const std::string& word) const;
};

/// How a flag is written: `--table`, or `-o` and `--output`.
struct FlagName {
  FlagName(const char* word) : name(word) {}  // NOLINT(google-explicit-constructor)
  FlagName(char short_name, const char* word) : letter(short_name), name(word) {}

  char letter = 0;
  const char* name;
};

/// Flags with the variables that their values go to, which must outlive this.
class Flags {
 public:
  void add(FlagName name, bool& target, std::string about,
           Flag::Takes takes = Flag::Takes::kNothing);
  void add(FlagName name, std::optional<std::string>& target, std::string about);
  /// One value, which `set` takes.
  void add(FlagName name, std::function<void(const std::string&)> set, std::string about);
  void add(FlagName name, std::vector<std::string>& target, std::string about,
           Flag::Takes takes = Flag::Takes::kEach);

  const std::vector<Flag>& all() const { return all_; }

 private:
  std::vector<Flag> all_;
};

}  // namespace stepop
