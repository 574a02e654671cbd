#include "eval_out/callbacks/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/core/programs/python.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBlank = " \t\r\n";
constexpr size_t kMostErr = 16'000;

constexpr std::array<std::string_view, 3> kNotFinite = {"NaN", "Infinity", "-Infinity"};

std::string python_of(const Config& params) {
  return find_python(params.has("python") ? params.get<std::string>("python") : "");
}

std::vector<std::string> words_of(const CallbackArguments& arguments,
                                  const std::vector<std::string>& program) {
  std::vector<std::string> words{python_of(arguments.params)};
  words.insert(words.end(), program.begin(), program.end());
  words.insert(words.end(), {arguments.data_out.path(), arguments.root});
  for (const auto& key : arguments.params.keys()) {
    if (key == "class" || key == "path" || key == "python") continue;
    const Value& value = *arguments.params.peek(key);
    if (value.is_null()) continue;
    words.push_back("--" + key);
    words.push_back(value.is_text() ? value.as_text() : to_json(value));
  }
  return words;
}

/// The last line that is not blank.
std::string last_line(const std::string& text) {
  const size_t last = text.find_last_not_of(kBlank);
  if (last == std::string::npos) return "";
  const size_t line_end = text.rfind('\n', last);
  const size_t begin = line_end == std::string::npos ? 0 : line_end + 1;
  return text.substr(begin, last + 1 - begin);
}

std::string without_blank_end(std::string text) {
  text.erase(text.find_last_not_of(kBlank) + 1);
  return text;
}

/// The line with NaN, Infinity and -Infinity as texts: Python's json prints these, but JSON does
/// not have them.
std::string with_quoted_numbers(const std::string& line) {
  std::string json;
  bool is_text = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!is_text) {
      const std::string_view rest = std::string_view(line).substr(i);
      const auto* word = std::find_if(kNotFinite.begin(), kNotFinite.end(),
                                      [&](const auto& each) { return rest.starts_with(each); });
      if (word != kNotFinite.end()) {
        json += fmt::format("\"{}\"", *word);
        i += word->size() - 1;
        continue;
      }
    }
    if (is_text && line[i] == '\\' && i + 1 < line.size()) {
      json += line[i++];  // the escaped character
    } else if (line[i] == '"') {
      is_text = !is_text;
    }
    json += line[i];
  }
  return json;
}

/// The number in `value`, which may be a text in kNotFinite.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  return non_finite_number(value.get_ref<const std::string&>());
}

Logs read_scalars(const std::string& script, const std::string& line) {
  const auto fail = [&](const std::string& what) {
    constexpr size_t kMost = 200;
    return Error(
        fmt::format("{}: the last line that it prints must be a JSON object of numbers, such as "
                    "{{\"accuracy\": 0.98}}; {}: {}",
                    script, what, shortened(line, kMost)));
  };
  Logs logs;
  if (line.empty()) return logs;
  const Json json = try_read_ordered_json(with_quoted_numbers(line));
  if (!json.is_object()) throw fail("found");
  for (const auto& [key, value] : json.items()) {
    const auto number = number_of(value);
    if (!number) throw fail(fmt::format("\"{}\" is not a number", key));
    if (key.empty() || key.find_first_of("\n\r\t") != std::string::npos) {
      throw fail("a number has no name");
    }
    logs.scalars.set(key, *number);
  }
  return logs;
}

}  // namespace

bool is_script(std::string_view name) { return name.ends_with(".py"); }

void check_script(const std::string& script, const Config& config, std::string_view path,
                  const Config& params) {
  params.claim();
  std::error_code failed;
  if (!fs::is_regular_file(script, failed)) {
    throw config.error(path, fmt::format("{}: no such script", script));
  }
  check_python(script, config, path, params);
}

void check_python(const std::string& what, const Config& config, std::string_view path,
                  const Config& params) {
  const std::string python = python_of(params);
  if (!find_program(python).empty()) return;
  throw config.error(path, fmt::format("no Python to run {} with: {}: not found; give one by "
                                       "\"python\" or by the environment's STEPOP_PYTHON",
                                       what, python));
}

namespace {

bool has_succeeded(const ChildResult& result) {
  return result.exit_code == 0 && result.signal == 0;
}

[[noreturn]] void fail(const std::string& name, const ChildResult& result) {
  const std::string how = result.signal != 0
                              ? fmt::format("was ended by signal {}", result.signal)
                              : fmt::format("ended with exit status {}", result.exit_code);
  const std::string output = without_blank_end(result.err);
  throw Error(fmt::format("{} {}{}{}", name, how,
                          output.empty() ? " and wrote nothing to its standard error" : ":\n",
                          output));
}

}  // namespace

Logs run_script(const CallbackArguments& arguments, const std::string& script) {
  const ChildResult result =
      run_child(words_of(arguments, {script}), [&] { arguments.data_out.throw_if_interrupted(); });
  if (!has_succeeded(result)) fail(script, result);
  return read_scalars(script, last_line(result.out));
}

Logs run_metric(const CallbackArguments& arguments, const MetricProgram& program) {
  const ChildResult result = run_child(
      words_of(arguments, program.words), [&] { arguments.data_out.throw_if_interrupted(); },
      kMostErr, /*ends_group=*/true);
  const std::string line = last_line(result.out);
  if (result.signal == 0 && result.exit_code == program.refusal) {
    const Json reason = try_read_ordered_json(line);
    if (reason.is_string()) {
      throw Error(fmt::format("{}: {}", program.name, reason.get<std::string>()));
    }
  }
  if (!has_succeeded(result)) fail(program.name, result);
  if (line.empty()) {
    throw Error(fmt::format(
        "{}: the metric ended Python with exit status 0 before it gave a number: it must return "
        "one, not call sys.exit or os._exit",
        program.name));
  }
  return read_scalars(program.name, line);
}

namespace {

struct ScriptParams {
  Path path;
  std::optional<std::string> python;

  void declare(Parameters& p) {
    p.require("path", path, "the script; other keys are handed to it");
    p.add("python", python, "the Python; none: that of the tree's .venv, else on the PATH");
  }
};

Logs script(const CallbackArguments& arguments, const ScriptParams& params) {
  return run_script(arguments, params.path.text);
}

STEPOP_REGISTER_CALLBACK(
    Script, script,
    {"A Python script, `python SCRIPT OUTPUTS ROOT --key value ...`, that prints its scalars as "
     "JSON."});

}  // namespace
}  // namespace stepop
