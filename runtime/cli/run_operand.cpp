#include "runtime/cli/run_operand.h"

#include <fmt/format.h>

#include <filesystem>

namespace stepop {

void refuse_config(const Arguments& arguments, const std::string& takes) {
  if (arguments.base.empty() && arguments.overrides.empty()) return;
  throw UsageError(fmt::format("stepop {} takes {} alone: {}", arguments.command->name, takes,
                               arguments.command->usage()));
}

RunDirectory open_run(const Arguments& arguments, const std::string& root) {
  std::error_code failed;
  if (!std::filesystem::is_directory(root, failed)) {
    throw UsageError(
        fmt::format("stepop {}: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>",
                    arguments.command->name, root));
  }
  if (!std::filesystem::is_directory(root + "/configs", failed)) {
    throw UsageError(fmt::format("stepop {}: {}: not the folder of a run: it has no configs/",
                                 arguments.command->name, root));
  }
  return RunDirectory::open(root);
}

}  // namespace stepop
