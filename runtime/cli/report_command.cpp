#include <fmt/format.h>

#include <filesystem>

#include "runtime/base/number_text.h"
#include "runtime/cli/run_operand.h"
#include "runtime/report/report.h"

namespace stepop {

int report_command(const Arguments& arguments) {
  refuse_config(arguments, "the folder of a run");
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const std::string path =
      arguments.operands.size() > 1 ? arguments.operands[1] : run.root() + "/report.html";
  if (std::filesystem::is_directory(path)) {
    throw UsageError(
        fmt::format("stepop report: {}: a folder; give the name of the HTML file to write", path));
  }
  write_report(run, path);
  fmt::print("{} ({})\n", path, size_text(static_cast<double>(std::filesystem::file_size(path))));
  return 0;
}

}  // namespace stepop
