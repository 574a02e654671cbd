#include "runtime/tools/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <tuple>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/tools/cli/remedy.h"

namespace stepop {
namespace {

struct Registered {
  CommandInfo info;
  std::unique_ptr<Command> (*make)();
};

std::vector<std::unique_ptr<Registered>>& registered() {
  static std::vector<std::unique_ptr<Registered>> all;
  return all;
}

}  // namespace

std::string CommandInfo::usage() const {
  return fmt::format("stepop {}{}{}", name, *operands != 0 ? " " : "", operands);
}

bool CommandInfo::takes_flag(std::string_view flag) const {
  if (flag == "help" || flag == "version") return true;
  std::istringstream words(takes);
  for (std::string word; words >> word;) {
    if (word == flag) return true;
  }
  return false;
}

std::vector<const CommandInfo*> commands() {
  std::vector<const CommandInfo*> all;
  for (const auto& each : registered()) all.push_back(&each->info);
  std::ranges::sort(all, {}, [](const CommandInfo* info) {
    return std::tuple(info->group, std::string_view(info->name));
  });
  return all;
}

const CommandInfo* find_command(std::string_view name) {
  for (const auto& each : registered()) {
    if (each->info.name == name) return &each->info;
  }
  return nullptr;
}

std::unique_ptr<Command> make_command(const CommandInfo& info) {
  for (const auto& each : registered()) {
    if (&each->info == &info) return each->make();
  }
  throw Error(fmt::format("the command {} is not registered", info.name));
}

bool register_command(const CommandInfo& info, std::unique_ptr<Command> (*make)()) {
  registered().push_back(std::make_unique<Registered>(Registered{info, make}));
  return true;
}

std::string keys_taken(const Arguments& arguments) {
  if (arguments.typed_overrides.empty()) return "";
  Arguments unused;
  std::vector<std::string> names;
  const Flags common = common_flags(unused);
  for (const Flag& flag : common.all()) {
    const bool is_taken = arguments.command == nullptr || arguments.command->takes_flag(flag.name);
    if (is_taken) names.push_back(flag.name);
  }
  Flags own;
  const auto command = arguments.command == nullptr ? nullptr : make_command(*arguments.command);
  if (command) command->add_flags(own);
  for (const Flag& flag : own.all()) names.push_back(flag.name);
  const auto& [path, words] = arguments.typed_overrides.front();
  const auto near = nearest_names(path, names, 1);
  return fmt::format("; {} sets a key of a config{}", words,
                     near.empty() ? "" : fmt::format(": did you mean --{}?", near.front()));
}

RunDirectory open_run(const Arguments& arguments, const std::string& root) {
  std::error_code failed;
  if (!std::filesystem::is_directory(root, failed)) {
    throw UsageError(
        fmt::format("stepop {}: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>{}",
                    arguments.command->name, root, run_near(root)));
  }
  if (!std::filesystem::is_directory(root + "/configs", failed)) {
    throw UsageError(fmt::format("stepop {}: {}: not the folder of a run: it has no configs/{}",
                                 arguments.command->name, root, run_near(root)));
  }
  return RunDirectory::open(root);
}

std::vector<RunDirectory> open_runs(const Arguments& arguments,
                                    const std::vector<std::string>& roots, size_t fewest) {
  std::vector<RunDirectory> runs;
  std::string problem;
  for (const auto& root : roots) {
    std::error_code failed;
    try {
      runs.push_back(open_run(arguments, root));
    } catch (const UsageError& error) {
      if (!std::filesystem::exists(root, failed)) throw;
      if (problem.empty()) problem = error.what();
      fmt::print(stderr, "stepop: {}: not the folder of a run: left out\n", shown_text(root));
    }
  }
  if (runs.size() < fewest) throw UsageError(problem);
  return runs;
}

}  // namespace stepop
