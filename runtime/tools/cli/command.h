#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/cli/flags.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// Runs a command with its arguments.
class Command {
 public:
  virtual ~Command() = default;
  /// Adds the flags that only this command takes.
  virtual void add_flags(Flags& /*flags*/) {}
  /// Returns the exit code.
  virtual int run(const Arguments& arguments) = 0;
};

/// The help's section for a command.
enum class CommandGroup { kBegin, kOneRun, kManyRuns, kShell };

/// The command that the first word of a command line names: `stepop checkpoints logs/...`.
struct CommandInfo {
  const char* name;
  CommandGroup group;
  const char* operands;  ///< The operands, for help and messages: `logs/<time>_<name>`.
  size_t fewest;         ///< The least number of operands.
  size_t most;           ///< The largest number of operands.
  const char* about;     ///< The description, in one line.
  /// The flags of a start that the command also takes, by name, separated by spaces. With
  /// `project`, `-p` gives the first operand. `base` also allows setting keys of the config.
  const char* takes;
  const char* example;  ///< One or more command lines.
  /// What such flags mean here, where it is not what they mean in a start: lines of a name, a
  /// colon, a space and the text. A flag without a text is not in the help.
  const char* meanings = "";

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

/// For commands without their own flags.
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

/// The end of a message where no config was given: which words set keys of it, and the flag that
/// was probably meant. Empty without such words.
std::string keys_taken(const Arguments& arguments);

/// The run in the folder that was given to a command; throws UsageError for any other folder.
RunDirectory open_run(const Arguments& arguments, const std::string& root);

/// The runs in the folders that were given to a command about several. Other folders, such as
/// logs/debug_runs among logs/*, are reported on the standard error and left out; throws UsageError
/// when fewer than `fewest` are left or one does not exist.
std::vector<RunDirectory> open_runs(const Arguments& arguments,
                                    const std::vector<std::string>& roots, size_t fewest = 2);

}  // namespace stepop

/// Registers `int function(const Arguments&, const Own&)` as a command; `Own` has the values of the
/// command's own flags and `void add_to(Flags&)`. The other arguments make a CommandInfo.
#define STEPOP_REGISTER_COMMAND(function, Own, ...)                                           \
  [[maybe_unused]] static const bool stepop_registered_##function =                           \
      ::stepop::register_command(__VA_ARGS__, []() -> std::unique_ptr<::stepop::Command> {    \
        return std::make_unique<::stepop::commands_detail::FunctionCommand<Own, function>>(); \
      })
