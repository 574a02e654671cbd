#include "runtime/cli/arguments.h"

// A comma in a file's name is a part of it.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <fmt/format.h>

#include <algorithm>
#include <cxxopts.hpp>

#include "runtime/base/nearest.h"
#include "runtime/base/shell_text.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/config/yaml_text.h"

namespace stepop {
namespace {

struct Flag {
  char letter;  // 0: none
  std::string name;
  /// kEach: one value, as often as the flag is given.
  enum class Takes { kNothing, kValue, kValues, kEach, kOptionalBool } takes;
  std::string about;
  std::string_view command = {};  // The only one that takes it, in the place of others like it.
};

const std::vector<Flag>& flags() {
  using enum Flag::Takes;
  static const std::vector<Flag> all = {
      {'n', "name", kValue, "name of the run, the end of its folder's name"},
      {'b', "base", kValues, "YAML files, each laid over those before it"},
      {'t', "train", kOptionalBool, "train; without it the run is evaluated"},
      {'p', "project", kValue, "go on with, or evaluate, the run in this folder"},
      {'c', "checkpoint", kValue,
       "this checkpoint (path, step, latest or best) instead of the latest"},
      {'c', "callback", kEach, "a callback, name:callback or ./script.py; again for more of them",
       "eval"},
      {'r', "retrain", kOptionalBool, "take the weights only and count from step 0"},
      {'l', "log_level", kValue, "debug, info (default), warn or critical"},
      {'d', "debug", kOptionalBool, "a short run into logs/debug_runs/"},
      {0, "current-code", kOptionalBool,
       "with -p: the sources as they are now, not the run's own copy of them"},
      {0, "check", kOptionalBool, "run every op on a batch, tell what it costs; write nothing"},
      {0, "profile", kOptionalBool, "tell at the end of a training where its time went"},
      {0, "allow-unknown", kOptionalBool, "unknown keys of the config are a warning"},
      {0, "template", kValue, "what to begin with: classifier, regression, autoencoder or gan",
       "new"},
      {0, "project", kNothing, "a CMake project with src/, configs/ and tests/", "new"},
      {'h', "help", kNothing, "this text"},
      {0, "version", kNothing, "the versions of stepop and of its libraries"},
  };
  return all;
}

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

/// Our own flags in the form that cxxopts reads (`--base=a --base=b`), and the overrides.
struct SplitWords {
  std::vector<std::string> own;
  std::vector<std::string> operands;  // neither a flag nor a flag's value
  std::vector<Override> overrides;
};

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
    throw UsageError(fmt::format("{} (in the value of --{})", error.what(), path));
  }
}

SplitWords split_words(const std::vector<std::string>& words, const Command* command) {
  SplitWords split;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const Flag* flag = find_flag(key, command);
    if (flag == nullptr && begins_option(word) && !word.starts_with("--")) {
      throw UsageError(
          fmt::format("unknown flag \"{}\"; there are -n, -b, -t, -p, -c, -r, -l, -d "
                      "and -h; `stepop --help` explains them",
                      word));
    }
    if (flag == nullptr && !begins_option(word)) {
      split.operands.push_back(word);
      continue;
    }
    const bool has_next = i + 1 < words.size() && !begins_option(words[i + 1]);
    if (flag == nullptr) {
      const std::string path = key.substr(2);
      if (path.empty()) throw UsageError("\"--\" is followed by no key: --path/key VALUE");
      if (equals == std::string::npos && !has_next) {
        throw UsageError(
            fmt::format("--{}: no value given; write --{} VALUE, for a switch --{} "
                        "true",
                        path, path, path));
      }
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
    if (flag->takes == kNothing) {
      split.own.push_back(name);
    } else if (flag->takes == kOptionalBool) {
      split.own.push_back(name + (has_next && is_bool(words[i + 1]) ? "=" + words[++i] : "=true"));
    } else if (!has_next) {
      throw UsageError(fmt::format("{}: no value given: {}", word, flag->about));
    } else {
      split.own.push_back(name + "=" + words[++i]);
      while (flag->takes == kValues && i + 1 < words.size() && !begins_option(words[i + 1])) {
        split.own.push_back(name + "=" + words[++i]);
      }
    }
  }
  return split;
}

/// The command that the first word names; null for a flag.
const Command* read_command(const std::string& word) {
  const Command* command = find_command(word);
  if (command != nullptr || begins_option(word)) return command;
  std::vector<std::string> names;
  for (const auto& known : commands()) names.emplace_back(known.name);
  const auto near = nearest_names(word, names, 1);
  throw UsageError(fmt::format("no command \"{}\"{} `stepop --help` lists the commands", word,
                               near.empty() ? ";" : "; did you mean " + near[0] + "?"));
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
                                 operands.empty() ? "nothing given" : "too little given",
                                 command->usage()));
  }
}

cxxopts::Options own_options(const Command* command) {
  cxxopts::Options options("stepop");
  for (const auto& flag : flags()) {
    if (find_flag("--" + flag.name, command) != &flag) continue;  // a command's own is taken
    using enum Flag::Takes;
    std::shared_ptr<cxxopts::Value> value = cxxopts::value<std::string>();
    if (flag.takes == kNothing || flag.takes == kOptionalBool) value = cxxopts::value<bool>();
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
  if (!rest.empty()) arguments.command = read_command(rest[0]);
  if (arguments.command != nullptr) rest.erase(rest.begin());
  arguments.help = words.empty();

  SplitWords split = split_words(rest, arguments.command);
  arguments.overrides = std::move(split.overrides);
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
    text("name", arguments.name);
    if (arguments.command != nullptr && arguments.command->run == new_command) {
      text("template", arguments.new_template);
      arguments.new_project = flag("project");
    } else {
      text("project", arguments.project);
    }
    text("checkpoint", arguments.checkpoint);
    const auto texts = [&](const char* name, std::vector<std::string>& target) {
      if (parsed.count(name) > 0) target = parsed[name].as<std::vector<std::string>>();
    };
    texts("base", arguments.base);
    texts("callback", arguments.callbacks);
    arguments.train = flag("train");
    arguments.retrain = flag("retrain");
    arguments.debug = flag("debug");
    arguments.current_code = flag("current-code");
    arguments.check = flag("check");
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
  if (!arguments.help && !arguments.version) {
    check_operands(arguments.command, arguments.operands);
  }
  return arguments;
}

namespace {

std::string flag_text(const Flag& flag) {
  using enum Flag::Takes;
  const std::string names = flag.letter == 0 ? fmt::format("    --{}", flag.name)
                                             : fmt::format("-{}, --{}", flag.letter, flag.name);
  const char* value = flag.takes == kValues                         ? " X..."
                      : flag.takes == kValue || flag.takes == kEach ? " X"
                                                                    : "";
  return fmt::format("  {:<24}", names + value);
}

}  // namespace

std::string help_text(const Command& command) {
  std::string text = fmt::format("{}\n  {}\n", command.usage(), command.about);
  for (const auto& flag : flags()) {
    if (flag.command == command.name) text += flag_text(flag) + flag.about + "\n";
  }
  return text + "\n`stepop --help` tells of everything else.\n";
}

std::string help_text() {
  std::string text = R"(stepop trains, logs and evaluates models on LibTorch.

  stepop -n NAME -b base1.yaml base2.yaml -t [--path/key value ...]
  stepop -p logs/<time>_<name> [-t] [--path/key value ...]

Commands
)";
  for (const auto& command : commands()) {
    text += fmt::format("  {}\n      {}\n", command.usage(), command.about);
  }
  text += "\nFlags\n";
  for (const auto& flag : flags()) {
    const std::string only = flag.command.empty() ? "" : fmt::format("stepop {}: ", flag.command);
    text += flag_text(flag) + only + flag.about + "\n";
  }
  return text + R"(
Every key of the config can be set: --optimizer/lr 3e-3, --model/hidden '[64, 32]',
--log_ops/+ validation/sample_op (appends), --datasets/train/path=data. Values are YAML: true,
null, 1e-3, -3, [1, 2], {a: 1}; anything else is text. Relative paths are relative to the current
folder here, and to its own folder in a config file.

A signal (INT, TERM, USR1, HUP) or --max_time 3h50m ends a training after its step, saved; -p RUN -t
goes on from the newest checkpoint that is whole, with the same bits as if nothing had happened.

Exit status: 0; 1 what went wrong in the run; 2 a mistake in the config or on the command line; 3
the run is whole, but a callback failed; 128 + the number of the signal that ended it.

Examples
  stepop -n digits -b configs/digits.yaml -t                     train
  stepop -n small -b configs/digits.yaml configs/small.yaml -t   the second file on top
  stepop -n fast -b configs/digits.yaml -t --optimizer/lr 3e-3 --num_epochs 2
  stepop -p logs/2026-11-21T10-00-00_digits                      evaluate its latest checkpoint
  stepop -p logs/2026-11-21T10-00-00_digits -c 230               evaluate the one of step 230
  stepop -p logs/2026-11-21T10-00-00_digits -t                   go on after a stop or a kill
  stepop -p logs/2026-11-21T10-00-00_digits -t --num_epochs 40   go on training, for longer
  stepop checkpoints logs/2026-11-21T10-00-00_digits             what there is to go on from
  stepop -n tuned -p logs/2026-11-21T10-00-00_digits -r -t       its weights, a new count and run
  stepop -n try -b configs/digits.yaml -t -d                     10 steps, to see that it runs
  stepop -b configs/digits.yaml -t --check                       shapes, times, memory of each op
  stepop -n slow -b configs/digits.yaml -t --profile             where a step's time goes
)";
}

}  // namespace stepop
