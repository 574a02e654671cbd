#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/code/precompiled_header.h"
#include "runtime/tools/project/kept_files.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

struct PrepareFlags {
  bool clean = false;

  void add_to(Flags& flags) {
    flags.add("clean", clean, "remove all that is kept: compiled code, headers, tokens, settings");
  }
};

int prepare_command(const Arguments& /*arguments*/, const PrepareFlags& own) {
  const SignalGuard signals;
  if (!own.clean) {
    prepare_precompiled_header({compiler_for({}), throw_if_signal_arrived},
                               [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  }
  const std::vector<KeptFiles> kept = kept_files();
  if (!own.clean) {
    fmt::print("{}", kept_files_table(kept));
    return 0;
  }
  for (const auto& files : kept) {
    if (files.paths.empty()) continue;
    for (const auto& path : files.paths) {
      std::error_code failed;
      std::filesystem::remove_all(path, failed);
      if (failed) throw Error(fmt::format("cannot remove {}: {}", path, failed.message()));
    }
    fmt::print("removed {}: {}\n", files.what, size_text(files.bytes));
  }
  return 0;
}

STEPOP_REGISTER_COMMAND(prepare_command, PrepareFlags,
                        {.name = "prepare",
                         .group = CommandGroup::kBegin,
                         .operands = "[--clean]",
                         .fewest = 0,
                         .most = 0,
                         .about = "precompile the headers for your own code, so that its first "
                                  "compile is fast; shows what is kept and how large it is",
                         .takes = "",
                         .example = "stepop prepare"});

}  // namespace

}  // namespace stepop
