#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/report/comparison.h"
#include "runtime/tools/report/report.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

/// Refuses to write over a page of the user's own, such as one that logs/* names last.
void check_is_ours(const std::string& path) {
  const auto before = try_read_file(path);
  if (!before || before->find("by stepop report.") != std::string::npos) return;
  throw UsageError(fmt::format(
      "stepop report: {}: there already, and no page of stepop report; give another name", path));
}

int report_command(const Arguments& arguments, const NoFlags& /*own*/) {
  std::vector<std::string> roots = arguments.operands;
  std::string path;
  if (roots.size() > 1 && fs::path(roots.back()).extension() == ".html") {
    path = roots.back();
    roots.pop_back();
  }
  const std::vector<RunDirectory> runs = roots.size() == 1
                                             ? std::vector{open_run(arguments, roots.front())}
                                             : open_runs(arguments, roots, /*fewest=*/1);
  if (path.empty()) {
    const fs::path first = runs.front().root();
    path = ((runs.size() == 1 ? first : first.parent_path()) / "report.html").string();
  }
  check_is_ours(path);
  if (runs.size() == 1) {
    write_report(runs.front(), path);
  } else {
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
