#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/report/comparison.h"
#include "runtime/tools/report/report.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

int report_command(const Arguments& arguments, const NoFlags& /*own*/) {
  std::vector<std::string> roots = arguments.operands;
  std::string path;
  if (roots.size() > 1 && fs::path(roots.back()).extension() == ".html") {
    path = roots.back();
    roots.pop_back();
  }
  if (roots.size() == 1) {
    const RunDirectory run = open_run(arguments, roots.front());
    if (path.empty()) path = run.root() + "/report.html";
    write_report(run, path);
  } else {
    const std::vector<RunDirectory> runs = open_runs(arguments, roots);
    if (path.empty()) path = (fs::path(runs.front().root()).parent_path() / "report.html").string();
    write_comparison(runs, path);
  }
  fmt::print("{} ({})\n", path, size_text(static_cast<double>(fs::file_size(path))));
  return 0;
}

STEPOP_REGISTER_COMMAND(
    report_command, NoFlags,
    {.name = "report",
     .group = CommandGroup::kOneRun,
     .operands = "logs/<time>_<name> [...] [FILE.html]",
     .fewest = 1,
     .most = 51,
     .about = "one HTML file about a run, or about several: curves, pictures, config, evaluations",
     .takes = "project",
     .example = "stepop report logs/<time>_digits digits.html\n"
                "stepop report logs/*_a logs/*_b comparison.html"});

}  // namespace

}  // namespace stepop
