#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/cli/flags.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// What a command does with its words.
class Command {
 public:
  virtual ~Command() = default;
  /// The flags that it alone takes.
  virtual void add_flags(Flags& /*flags*/) {}
  /// Returns the exit code.
  virtual int run(const Arguments& arguments) = 0;
};

/// Where the help names a command.
enum class CommandGroup { kBegin, kOneRun, kManyRuns, kShell };

/// What the first word of a command line names: `stepop checkpoints logs/...`.
struct CommandInfo {
  const char* name;
  CommandGroup group;
  const char* operands;  ///< The words that it takes, for help and messages: `logs/<time>_<name>`.
  size_t fewest;         ///< Words that it needs.
  size_t most;           ///< Words that it takes.
  const char* about;     ///< One line.
  /// The flags of a start that it takes as well, by name, with spaces between. Of a command with
  /// words `-p` is one of these. `base` is also the leave to set keys of the config.
  const char* takes;
  const char* example;  ///< A command line, or several.

  /// `stepop checkpoints logs/<time>_<name>`
  std::string usage() const;
  bool takes_flag(std::string_view flag) const;
};

/// The commands by group and name.
std::vector<const CommandInfo*> commands();
/// The command of that name, or null.
const CommandInfo* find_command(std::string_view name);
std::unique_ptr<Command> make_command(const CommandInfo& info);

bool register_command(const CommandInfo& info, std::unique_ptr<Command> (*make)());

/// Of a command without flags of its own.
struct NoFlags {
  void add_to(Flags& /*flags*/) {}
};

namespace commands_detail {

template <class Own, int (*function)(const Arguments&, const Own&)>
class FunctionCommand : public Command {
 public:
  void add_flags(Flags& flags) override { own_.add_to(flags); }
  int run(const Arguments& arguments) override { return function(arguments, own_); }

 private:
  Own own_;
};

}  // namespace commands_detail

/// The run in the folder that was given to a command; throws UsageError when it is none.
RunDirectory open_run(const Arguments& arguments, const std::string& root);

}  // namespace stepop

/// Makes `int function(const Arguments&, const Own&)` a command; `Own` is a struct of the values of
/// its own flags, with `void add_to(Flags&)`. The rest is a CommandInfo.
#define STEPOP_REGISTER_COMMAND(function, Own, ...)                                           \
  [[maybe_unused]] static const bool stepop_registered_##function =                           \
      ::stepop::register_command(__VA_ARGS__, []() -> std::unique_ptr<::stepop::Command> {    \
        return std::make_unique<::stepop::commands_detail::FunctionCommand<Own, function>>(); \
      })
