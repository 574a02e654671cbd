#include "runtime/tools/cli/command_line.h"

// A comma in a file's name is a part of it.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <fmt/format.h>

#include <algorithm>
#include <cxxopts.hpp>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/yaml_reader.h"
#include "runtime/core/config/yaml_text.h"
#include "runtime/tools/cli/commands.h"
#include "runtime/tools/cli/help.h"

namespace stepop {
namespace {

const Flag* find_flag(const std::string& word, const Command* command) {
  const Flag* found = nullptr;
  for (const auto& flag : flags()) {
    const bool is_short = flag.letter != 0 && word == std::string("-") + flag.letter;
    if (!is_short && word != "--" + flag.name) continue;
    if (flag.command.empty() && found == nullptr) found = &flag;
    if (command != nullptr && flag.command == command->name) found = &flag;
  }
  return found;
}

bool is_bool(const std::string& word) {
  const Value value = plain_scalar(word);
  return value.is_bool();
}

/// A word that begins an option: `-x` or `--x`, but not a number such as `-3` and not `-`.
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
    // Anything else is one plain scalar, so that `a: b` and `#1` stay the texts they look like.
    return is_flow ? parse_yaml(text, origin, /*keep_line=*/true)
                   : plain_scalar(text).set_origin(origin);
  } catch (const UsageError& error) {
    // `{data/root}/train`: YAML takes the first brace for that of a map.
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

/// `-train` for `--train`, `-o` where no command takes it, `-w`.
std::string unknown_flag(const std::string& word) {
  std::string letters, commands;
  for (const auto& flag : flags()) {
    if (word == "-" + flag.name) {
      return fmt::format("unknown flag \"{}\"; did you mean -{}?", word, word);
    }
    if (flag.letter == 0) continue;
    if (flag.command.empty())
      letters += fmt::format("{}-{}", letters.empty() ? "" : ", ", flag.letter);
    if (!flag.command.empty() && word == fmt::format("-{}", flag.letter)) {
      commands += fmt::format("{}stepop {}", commands.empty() ? "" : ", ", flag.command);
    }
  }
  if (!commands.empty()) return fmt::format("{}: a flag of {} alone", word, commands);
  const std::string key = word.substr(1, word.find('=') - 1);
  const std::string hint =
      key.size() > 1 ? fmt::format(", and --{} VALUE sets a key of the config", key) : "";
  return fmt::format("unknown flag \"{}\"; there are {}{}; `stepop --help` explains them", word,
                     letters, hint);
}

SplitWords split_words(const std::vector<std::string>& words, const Command* command) {
  SplitWords split;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const Flag* flag = find_flag(key, command);
    const bool is_followed = i + 1 < words.size() && !begins_option(words[i + 1]);
    const bool has_value = equals != std::string::npos || is_followed;
    if (flag != nullptr && flag->takes == Flag::Takes::kUnlessValue && has_value) flag = nullptr;
    if (flag == nullptr && begins_option(word) && !word.starts_with("--")) {
      throw UsageError(unknown_flag(word));
    }
    if (flag == nullptr && !begins_option(word)) {
      split.operands.push_back(word);
      continue;
    }
    if (flag == nullptr) {
      const std::string path = key.substr(2);
      if (path.empty()) throw UsageError("\"--\" is followed by no key: --path/key VALUE");
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
      // Apart, as cxxopts takes no line break behind a "=".
      split.own.insert(split.own.end(), {name, words[++i]});
      while (flag->takes == kValues && i + 1 < words.size() && !begins_option(words[i + 1])) {
        split.own.insert(split.own.end(), {name, words[++i]});
      }
    }
  }
  return split;
}

/// What does here what a first word does in other programs; `rest` are the words behind it.
std::string as_elsewhere(const std::string& word, const std::string& rest) {
  const size_t equals = word.find('=');
  if (equals != std::string::npos && equals > 0) {  // as Hydra has it
    std::string path = word.substr(0, equals);
    path.erase(0, path.find_first_not_of('+'));
    std::replace(path.begin(), path.end(), '.', '/');
    return fmt::format("; did you mean --{} {}?", path, shell_word(word.substr(equals + 1)));
  }
  if (word == "train" || word == "fit" || word == "run") {
    return fmt::format("; -t trains: stepop {} -t", rest.empty() ? "-b base.yaml" : rest);
  }
  if (word == "resume" || word == "continue") return "; stepop -p logs/RUN -t resumes a run";
  if (word == "test" || word == "validate" || word == "evaluate") {
    return "; stepop -p logs/RUN evaluates a run";
  }
  if (word == "init" || word == "create") return "; did you mean new?";
  return "";
}

/// The command that the first of `words` names; null for a flag. Throws UsageError for another
/// word, with what does here what that word does in other programs.
const Command* read_command(const std::vector<std::string>& words) {
  const std::string& word = words[0];
  const Command* command = find_command(word);
  if (command != nullptr || begins_option(word)) return command;
  std::vector<std::string> names;
  for (const auto& known : commands()) names.emplace_back(known.name);
  std::string rest;
  for (size_t i = 1; i < words.size(); ++i) rest += (i > 1 ? " " : "") + shell_word(words[i]);
  std::string help = as_elsewhere(word, rest);
  const auto near = nearest_names(word, names, 1);
  if (help.empty() && !near.empty()) help = "; did you mean " + near[0] + "?";
  const bool is_sentence = help.ends_with('?');
  throw UsageError(fmt::format("no command \"{}\"{}{} `stepop --help` lists the commands", word,
                               help, is_sentence ? "" : ";"));
}

void check_operands(const Command* command, const std::vector<std::string>& operands) {
  const size_t most = command == nullptr ? 0 : command->most;
  if (operands.size() > most) {
    const std::string word = operands[most];
    if (command != nullptr) {
      throw UsageError(fmt::format("stray word \"{}\": {}", word, command->usage()));
    }
    throw UsageError(
        fmt::format("stray word \"{}\"; a key of the config is set by --path/key VALUE, a list of "
                    "values by --path/key '[1, 2]'",
                    word));
  }
  if (command != nullptr && operands.size() < command->fewest) {
    throw UsageError(fmt::format("stepop {}: {}: {}", command->name,
                                 operands.empty() ? "nothing given" : "too few arguments",
                                 command->usage()));
  }
}

cxxopts::Options own_options(const Command* command) {
  cxxopts::Options options("stepop");
  for (const auto& flag : flags()) {
    if (find_flag("--" + flag.name, command) != &flag) continue;  // a command's own is taken
    using enum Flag::Takes;
    std::shared_ptr<cxxopts::Value> value = cxxopts::value<std::string>();
    const bool is_bare = flag.takes == kNothing || flag.takes == kUnlessValue;
    if (is_bare || flag.takes == kOptionalBool) value = cxxopts::value<bool>();
    if (flag.takes == kValues || flag.takes == kEach)
      value = cxxopts::value<std::vector<std::string>>();
    options.add_options()(flag.name, flag.about, value);
  }
  return options;
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  arguments.command_line = "stepop";
  for (const auto& word : words) arguments.command_line += " " + shell_word(word);
  std::vector<std::string> rest = words;
  if (!rest.empty()) arguments.command = read_command(rest);
  if (arguments.command != nullptr) rest.erase(rest.begin());
  arguments.help = words.empty();

  SplitWords split = split_words(rest, arguments.command);
  arguments.overrides = std::move(split.overrides);
  arguments.typed_overrides = std::move(split.typed);
  arguments.operands = std::move(split.operands);
  std::vector<const char*> pointers = {"stepop"};
  for (const auto& word : split.own) pointers.push_back(word.c_str());
  try {
    const auto parsed =
        own_options(arguments.command).parse(static_cast<int>(pointers.size()), pointers.data());
    const auto text = [&](const char* name, std::optional<std::string>& target) {
      if (parsed.count(name) > 1) throw UsageError(fmt::format("--{} is given twice", name));
      if (parsed.count(name) == 1) target = parsed[name].as<std::string>();
    };
    const auto flag = [&](const char* name) {
      return parsed.count(name) > 0 && parsed[name].as<bool>();
    };
    const auto texts = [&](const char* name, std::vector<std::string>& target) {
      if (parsed.count(name) > 0) target = parsed[name].as<std::vector<std::string>>();
    };
    text("name", arguments.name);
    if (arguments.command != nullptr && arguments.command->run == new_command) {
      text("template", arguments.new_template);
      texts("from-edflow", arguments.from_edflow);
      text("from-dlas", arguments.from_dlas);
      arguments.new_project = flag("project");
    } else {
      text("project", arguments.project);
    }
    text("checkpoint", arguments.checkpoint);
    text("sort", arguments.sort);
    text("best", arguments.best);
    text("state", arguments.state);
    text("jobs", arguments.jobs);
    text("processes", arguments.processes);
    text("tuned", arguments.tuned);
    if (arguments.command != nullptr && arguments.command->run == tune_command) {
      text("time", arguments.time_limit);
      arguments.tunes_precision = flag("precision");
      arguments.tunes_batch_size = flag("batch_size");
      arguments.tunes_lr = flag("lr");
    }
    text("output", arguments.output);
    text("html", arguments.html);
    text("examples", arguments.examples);
    text("network", arguments.network);
    std::optional<std::string> logs;
    text("logs", logs);
    if (logs) arguments.logs = *logs;
    arguments.clean = flag("clean");
    arguments.keys = flag("keys");
    arguments.paths = flag("paths");
    arguments.json = flag("json");
    arguments.csv = flag("csv");
    texts("base", arguments.base);
    texts("callback", arguments.callbacks);
    texts("where", arguments.where);
    texts("show", arguments.show);
    arguments.table = flag("table");
    arguments.train = flag("train");
    arguments.retrain = flag("retrain");
    arguments.debug = flag("debug");
    arguments.current_code = flag("current-code");
    arguments.check = flag("check");
    arguments.graph = flag("graph");
    arguments.profile = flag("profile");
    arguments.allow_unknown = flag("allow-unknown");
    std::optional<std::string> level;
    text("log_level", level);
    if (level) arguments.log_level = parse_log_level(*level);
    arguments.help = arguments.help || flag("help");
    arguments.version = flag("version");
  } catch (const cxxopts::exceptions::exception& error) {
    throw UsageError(error.what());
  }
  const bool takes_folder = arguments.command != nullptr && arguments.command->most > 0;
  if (takes_folder && arguments.operands.empty() && arguments.project) {
    arguments.operands.push_back(*arguments.project);
  }
  if (arguments.command != nullptr && arguments.command->run == help_command &&
      arguments.operands.size() == 1) {  // `help sweep` is `sweep --help`
    arguments.command = read_command(arguments.operands);
    arguments.help = true;
  }
  if (!arguments.help && !arguments.version) {
    check_operands(arguments.command, arguments.operands);
  }
  return arguments;
}

}  // namespace stepop
