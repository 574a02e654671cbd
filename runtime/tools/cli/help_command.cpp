#include <fmt/format.h>

#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/help.h"

namespace stepop {
namespace {

int help_command(const Arguments& /*arguments*/, const NoFlags& /*own*/) {
  fmt::print("{}", help_text());
  return 0;
}

STEPOP_REGISTER_COMMAND(help_command, NoFlags,
                        {.name = "help",
                         .group = CommandGroup::kShell,
                         .operands = "[COMMAND]",
                         .fewest = 0,
                         .most = 1,
                         .about = "print this text, or the help of one command",
                         .takes = "",
                         .example = "stepop help sweep"});

}  // namespace

}  // namespace stepop
