#include "runtime/tools/cli/command_line.h"

// A comma in a file's name is part of the name.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <fmt/format.h>

#include <algorithm>
#include <cxxopts.hpp>
#include <filesystem>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/config_groups.h"
#include "runtime/tools/cli/help.h"

namespace stepop {
namespace {

const Flag* find_flag(const std::string& word, const std::vector<Flag>& flags) {
  const auto found = std::ranges::find_if(flags, [&](const Flag& flag) { return flag.is(word); });
  return found == flags.end() ? nullptr : &*found;
}

bool is_bool(const std::string& word) {
  const Value value = plain_scalar(word);
  return value.is_bool();
}

/// Whether a word begins an option: `-x` or `--x`, but not a number such as `-3`, and not `-`.
bool begins_option(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const Value value = plain_scalar(word);
  return !value.is_int() && !value.is_float();
}

/// Our own flags in the form that cxxopts reads (`--base a --base b`), and the overrides.
struct SplitWords {
  std::vector<std::string> own;
  std::vector<std::string> operands;  // neither a flag nor a flag's value
  std::vector<Override> overrides;
  std::vector<std::pair<std::string, std::string>> typed;  // see Arguments
};

}  // namespace

Value override_value(const std::string& path, const std::string& text) {
  const Origin origin{Origin::kCommandLine, 0};
  if (!is_utf8(path) || !is_utf8(text)) {
    throw UsageError(fmt::format("--{} {}: not UTF-8 text, which the config must be", path, text));
  }
  if (text.empty()) return Value(text).set_origin(origin);
  try {
    const bool is_flow =
        text[0] == '[' || text[0] == '{' || text[0] == '"' || text[0] == '\'' || text[0] == '!';
    // Any other text is one plain scalar, so that `a: b` and `#1` stay texts.
    return is_flow ? parse_yaml(text, origin, /*keep_line=*/true)
                   : plain_scalar(text).set_origin(origin);
  } catch (const UsageError& error) {
    // `{data/root}/train`: YAML reads the first brace as the start of a map.
    const size_t end = text[0] == '{' ? text.find('}') : std::string::npos;
    if (end != std::string::npos && end + 1 < text.size() && text.find('"') == std::string::npos) {
      throw UsageError(
          fmt::format("--{}: a text that begins with a reference has quotes inside the quotes: "
                      "--{} {}",
                      path, path, shell_word("\"" + text + "\"")));
    }
    throw UsageError(fmt::format("{} (in the value of --{})", error.what(), path));
  }
}

namespace {

/// The message for `-train` instead of `--train`, for `-o` where no command takes it.
std::string unknown_flag(const std::string& word, const std::vector<Flag>& flags) {
  std::string letters;
  for (const auto& flag : flags) {
    if (word == "-" + flag.name) {
      return fmt::format("unknown flag \"{}\"; did you mean -{}?", word, word);
    }
    if (flag.letter != 0) letters += fmt::format("{}-{}", letters.empty() ? "" : ", ", flag.letter);
  }
  std::string takers;
  for (const CommandInfo* command : commands()) {
    const std::vector<Flag> own = own_flags(*command);
    if (find_flag("-" + word, own) != nullptr) {
      return fmt::format("unknown flag \"{}\"; did you mean -{}?", word, word);
    }
    if (find_flag(word, own) == nullptr) continue;
    takers += fmt::format("{}stepop {}", takers.empty() ? "" : ", ", command->name);
  }
  if (!takers.empty()) return fmt::format("{}: a flag of {} alone", word, takers);
  const std::string key = word.substr(1, word.find('=') - 1);
  const std::string hint =
      key.size() > 1 ? fmt::format(", and --{} VALUE sets a key of the config", key) : "";
  return fmt::format("unknown flag \"{}\"; there are {}{}; `stepop --help` explains them", word,
                     letters, hint);
}

/// Throws the error for a flag or key that the command does not take.
[[noreturn]] void refuse(const CommandInfo& command, const std::string& word) {
  std::vector<std::string> names;
  for (const auto& flag : own_flags(command)) names.push_back("--" + flag.name);
  const auto near = nearest_names(word, names, 1);
  throw UsageError(fmt::format("stepop {} does not take {}{}", command.name, word,
                               near.empty() ? "" : fmt::format("; did you mean {}?", near[0])));
}

/// The first `own_count` flags are the command's own; the command takes only some of the others.
SplitWords split_words(const std::vector<std::string>& words, const CommandInfo* command,
                       const std::vector<Flag>& flags, size_t own_count) {
  SplitWords split;
  const bool has_dots = std::ranges::any_of(words, [&](const std::string& word) {
    const Flag* flag = find_flag(word, flags);
    return flag != nullptr && flag->name == "wandb_sweep";
  });
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const Flag* flag = find_flag(key, flags);
    const bool is_followed = i + 1 < words.size() && !begins_option(words[i + 1]);
    const bool has_value = equals != std::string::npos || is_followed;
    if (flag != nullptr && flag->takes == Flag::Takes::kUnlessValue && has_value) flag = nullptr;
    if (flag == nullptr && begins_option(word) && !word.starts_with("--")) {
      throw UsageError(unknown_flag(word, flags));
    }
    if (flag == nullptr && !begins_option(word)) {
      split.operands.push_back(word);
      continue;
    }
    if (flag == nullptr) {
      std::string path = key.substr(2);
      if (has_dots) std::ranges::replace(path, '.', '/');
      if (path.empty()) throw UsageError("\"--\" is followed by no key: --path/key VALUE");
      if (command != nullptr && !command->takes_flag("base")) refuse(*command, key);
      if (!has_value) {
        throw UsageError(
            fmt::format("--{}: no value given; write --{} VALUE, for a switch --{} "
                        "true",
                        path, path, path));
      }
      split.typed.emplace_back(path, shell_word(word));
      if (equals == std::string::npos) split.typed.back().second += " " + shell_word(words[i + 1]);
      const std::string text = equals != std::string::npos ? word.substr(equals + 1) : words[++i];
      split.overrides.push_back({path, override_value(path, text)});
      continue;
    }
    const bool is_own = flag - flags.data() < static_cast<std::ptrdiff_t>(own_count);
    if (command != nullptr && !is_own && !command->takes_flag(flag->name)) refuse(*command, key);
    const std::string name = "--" + flag->name;
    if (equals != std::string::npos) {
      split.own.push_back(name + word.substr(equals));
      continue;
    }
    using enum Flag::Takes;
    if (flag->takes == kNothing || flag->takes == kUnlessValue) {
      split.own.push_back(name);
    } else if (flag->takes == kOptionalBool) {
      split.own.push_back(name +
                          (is_followed && is_bool(words[i + 1]) ? "=" + words[++i] : "=true"));
    } else if (!is_followed) {
      throw UsageError(fmt::format("{}: no value given: {}", word, flag->about));
    } else {
      // Flag and value are separate words, since cxxopts takes no line break after a "=".
      split.own.insert(split.own.end(), {name, words[++i]});
      while (flag->takes == kValues && i + 1 < words.size() && !begins_option(words[i + 1])) {
        split.own.insert(split.own.end(), {name, words[++i]});
      }
    }
  }
  return split;
}

/// The words of a training for those after `train`: `digits.yaml` alone is a config.
std::string words_of_training(const std::vector<std::string>& rest) {
  std::string words;
  bool has_base = std::ranges::any_of(
      rest, [](const std::string& word) { return word == "-b" || word == "--base"; });
  for (const auto& word : rest) {
    if (!has_base && (word.ends_with(".yaml") || word.ends_with(".yml"))) {
      has_base = true;
      const std::string name = std::filesystem::path(word).stem();
      words += fmt::format("{}-n {} -b", words.empty() ? "" : " ", shell_word(name));
    }
    words += (words.empty() ? "" : " ") + shell_word(word);
  }
  return words.empty() ? "-b base.yaml" : words;
}

/// The advice for a first word that other programs know; `rest` are the words after it.
std::string as_elsewhere(const std::string& word, const std::vector<std::string>& rest) {
  const size_t equals = word.find('=');
  if (equals != std::string::npos && equals > 0) {  // Hydra's form
    std::string path = word.substr(0, equals);
    path.erase(0, path.find_first_not_of('+'));
    std::replace(path.begin(), path.end(), '.', '/');
    return fmt::format("; did you mean --{} {}?", path, shell_word(word.substr(equals + 1)));
  }
  if (word == "train" || word == "fit" || word == "run") {
    return fmt::format("; -t trains: stepop {} -t", words_of_training(rest));
  }
  if (word == "resume" || word == "continue")
    return "; stepop -p logs/RUN -t resumes a run, --resume the newest of a name";
  if (word == "test" || word == "validate" || word == "evaluate") {
    return "; stepop -p logs/RUN evaluates a run";
  }
  if (word == "init" || word == "create") return "; did you mean new?";
  return "";
}

/// The command that the first of `words` names; null for a flag. Throws UsageError for any other
/// word, with advice for words that other programs know.
const CommandInfo* read_command(const std::vector<std::string>& words) {
  const std::string& word = words[0];
  const CommandInfo* command = find_command(word);
  if (command != nullptr || begins_option(word)) return command;
  std::vector<std::string> names;
  for (const CommandInfo* known : commands()) names.emplace_back(known->name);
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  std::string help = as_elsewhere(word, rest);
  // Between a command and a misspelt `train`, the nearer one is meant.
  names.emplace_back("train");
  const auto near = nearest_names(word, names, 1);
  if (help.empty() && !near.empty()) {
    help = near[0] == "train" ? as_elsewhere("train", rest) : "; did you mean " + near[0] + "?";
  }
  const bool is_sentence = help.ends_with('?');
  throw UsageError(fmt::format("no command \"{}\"{}{} `stepop --help` lists the commands", word,
                               help, is_sentence ? "" : ";"));
}

void check_operands(const CommandInfo* command, const std::vector<std::string>& operands,
                    bool is_resumed = false) {
  const size_t most = command == nullptr ? 0 : command->most;
  if (operands.size() > most) {
    const std::string word = operands[most];
    if (command != nullptr) {
      throw UsageError(fmt::format("stepop {}: stray word \"{}\"", command->name, word));
    }
    if (is_resumed) {
      throw UsageError(
          fmt::format("stray word \"{}\"; --resume takes none and resumes the newest run of a "
                      "name; this one is resumed by: stepop -p {} -t",
                      word, shell_word(word)));
    }
    throw UsageError(
        fmt::format("stray word \"{}\"; a key of the config is set by --path/key VALUE, a list of "
                    "values by --path/key '[1, 2]'",
                    word));
  }
  if (command != nullptr && operands.size() < command->fewest) {
    throw UsageError(fmt::format("stepop {}: {}", command->name,
                                 operands.empty() ? "nothing given" : "too few arguments"));
  }
}

cxxopts::Options options_of(const std::vector<Flag>& flags) {
  cxxopts::Options options("stepop");
  for (const auto& flag : flags) {
    using enum Flag::Takes;
    std::shared_ptr<cxxopts::Value> value = cxxopts::value<std::vector<std::string>>();
    const bool is_bare = flag.takes == kNothing || flag.takes == kUnlessValue;
    if (is_bare || flag.takes == kOptionalBool) value = cxxopts::value<bool>();
    options.add_options()(flag.name, flag.about, value);
  }
  return options;
}

/// Sets the flags to the values in the words, which cxxopts parses.
void set_flags(const std::vector<Flag>& flags, const std::vector<std::string>& words) {
  std::vector<const char*> pointers = {"stepop"};
  for (const auto& word : words) pointers.push_back(word.c_str());
  try {
    const auto parsed = options_of(flags).parse(static_cast<int>(pointers.size()), pointers.data());
    for (const auto& flag : flags) {
      using enum Flag::Takes;
      const size_t count = parsed.count(flag.name);
      if (count == 0) continue;
      if (flag.takes == kNothing || flag.takes == kUnlessValue || flag.takes == kOptionalBool) {
        flag.set({parsed[flag.name].as<bool>() ? "true" : "false"});
      } else if (flag.takes == kValue && count > 1) {
        throw UsageError(fmt::format("--{} is given twice", flag.name));
      } else {
        flag.set(parsed[flag.name].as<std::vector<std::string>>());
      }
    }
  } catch (const cxxopts::exceptions::exception& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words) {
  CommandLine line;
  Arguments& arguments = line.arguments;
  arguments.command_line = "stepop";
  for (const auto& word : words) {
    // Records and advice have the line that a user types.
    if (word != "--json") arguments.command_line += " " + shell_word(word);
  }
  std::vector<std::string> rest = words;
  if (!rest.empty()) arguments.command = read_command(rest);
  if (arguments.command != nullptr) rest.erase(rest.begin());
  arguments.help = words.empty();

  Flags own;
  if (arguments.command != nullptr) {
    line.command = make_command(*arguments.command);
    line.command->add_flags(own);
  }
  std::vector<Flag> flags = own.all();
  const size_t own_count = flags.size();
  const Flags common = common_flags(arguments);
  for (const auto& flag : common.all()) {  // the command's flags come first
    if (find_flag("--" + flag.name, own.all()) == nullptr) flags.push_back(flag);
  }
  SplitWords split = split_words(rest, arguments.command, flags, own_count);
  arguments.overrides = std::move(split.overrides);
  arguments.typed_overrides = std::move(split.typed);
  arguments.operands = std::move(split.operands);
  set_flags(flags, split.own);
  if (arguments.command == nullptr || arguments.command->takes_flag("base")) {
    choose_from_groups(arguments);
  }
  if (arguments.command == nullptr) {
    if (!arguments.help && !arguments.version)
      check_operands(nullptr, arguments.operands, arguments.resume);
    return line;
  }
  if (arguments.command->most > 0 && arguments.operands.empty() && arguments.project) {
    arguments.operands.push_back(*arguments.project);
  }
  if (std::string_view(arguments.command->name) == "help" && arguments.operands.size() == 1) {
    arguments.command = read_command(arguments.operands);  // `help sweep` means `sweep --help`
    arguments.help = true;
  }
  if (!arguments.help && !arguments.version) {
    check_operands(arguments.command, arguments.operands);
  }
  return line;
}

}  // namespace stepop
