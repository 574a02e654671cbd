#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/report/report.h"

namespace stepop {
namespace {

int report_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const std::string path =
      arguments.operands.size() > 1 ? arguments.operands[1] : run.root() + "/report.html";
  if (std::filesystem::is_directory(path + "/configs")) {
    throw UsageError(fmt::format(
        "stepop report: {0}: a run, and a report is about one: `stepop compare {1} {0}` shows how "
        "their configs differ, and their metrics side by side",
        path, arguments.operands.front()));
  }
  if (std::filesystem::is_directory(path)) {
    throw UsageError(
        fmt::format("stepop report: {}: a folder; give the name of the HTML file to write", path));
  }
  write_report(run, path);
  fmt::print("{} ({})\n", path, size_text(static_cast<double>(std::filesystem::file_size(path))));
  return 0;
}

STEPOP_REGISTER_COMMAND(
    report_command, NoFlags,
    {.name = "report",
     .group = CommandGroup::kOneRun,
     .operands = "logs/<time>_<name> [FILE.html]",
     .fewest = 1,
     .most = 2,
     .about = "one HTML file about a run: curves, pictures, config, evaluations",
     .takes = "project",
     .example = "stepop report logs/<time>_digits digits.html"});

}  // namespace

}  // namespace stepop
