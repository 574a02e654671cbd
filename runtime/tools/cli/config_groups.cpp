#include "runtime/tools/cli/config_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/config_files.h"
#include "runtime/tools/cli/command.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".yaml";

struct Choice {
  std::string group;  ///< `model`, or `optimizer/lr`
  std::string name;   ///< `resnet`
};

std::optional<Choice> read_choice(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) return std::nullopt;
  const bool is_path =
      std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                  [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '/'; });
  const bool is_file = word.ends_with(kEnding) || word.ends_with(".yml");
  std::error_code ignored;
  if (!is_path || is_file || word.front() == '/' || fs::exists(word, ignored)) return std::nullopt;
  return Choice{word.substr(0, equals), word.substr(equals + 1)};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == kEnding) names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

/// The file of a choice. `bases` are the configs of -b.
std::string find_file(const Choice& choice, const std::vector<std::string>& bases) {
  const std::string word = choice.group + "=" + choice.name;
  if (bases.empty()) {
    throw UsageError(
        fmt::format("{}: expected -b, as {} names a file {}/{}{} beside its config; "
                    "a key of the config is set by --{} {}",
                    word, word, choice.group, choice.name, kEnding, choice.group, choice.name));
  }
  std::vector<std::string> folders;
  std::vector<std::string> names;
  for (auto base = bases.rbegin(); base != bases.rend(); ++base) {
    const fs::path folder = fs::path(folder_of_config(*base)) / choice.group;
    const fs::path file = folder / (choice.name + kEnding);
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file;
    if (std::ranges::find(folders, folder.string()) != folders.end()) continue;
    folders.push_back(folder);
    for (const auto& name : names_in(folder)) names.push_back(name);
  }
  if (names.empty()) {
    throw UsageError(fmt::format("{}: no config lies in {}; did you mean --{} {}?", word,
                                 fmt::join(folders, ", "), choice.group, choice.name));
  }
  const auto near = nearest_names(choice.name, names, 1);
  throw UsageError(fmt::format("{}: no {}{} in {}; there are: {}{}", word, choice.name, kEnding,
                               fmt::join(folders, ", "), list_text(names),
                               near.empty() ? "" : fmt::format("; did you mean {}?", near[0])));
}

/// Takes the choices out of `words`.
std::vector<Choice> taken_from(std::vector<std::string>& words) {
  std::vector<Choice> choices;
  std::erase_if(words, [&](const std::string& word) {
    auto choice = read_choice(word);
    if (choice) choices.push_back(std::move(*choice));
    return choice.has_value();
  });
  return choices;
}

}  // namespace

void choose_from_groups(Arguments& arguments) {
  std::vector<Choice> choices = taken_from(arguments.base);
  const bool has_own_words = arguments.command != nullptr && arguments.command->most > 0;
  if (!has_own_words) {
    for (auto& choice : taken_from(arguments.operands)) choices.push_back(std::move(choice));
  }
  for (const auto& choice : choices) {
    arguments.overrides.push_back(
        {choice.group, read_config_file(find_file(choice, arguments.base))});
    arguments.typed_overrides.emplace_back(choice.group, choice.group + "=" + choice.name);
  }
}

}  // namespace stepop
