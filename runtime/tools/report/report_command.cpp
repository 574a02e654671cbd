#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/report/comparison.h"
#include "runtime/tools/report/http_server.h"
#include "runtime/tools/report/live_page.h"
#include "runtime/tools/report/report.h"
#include "runtime/train/run/run_summary.h"
#include "runtime/train/run/signals.h"

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

struct ReportFlags {
  bool live = false;

  void add_to(Flags& flags) {
    flags.add(
        "live", live,
        "show the page in a browser, at an address of this machine that is printed, and follow "
        "the runs; logs, or another folder of runs, shows those that begin there as well; "
        "Ctrl-C ends");
  }
};

/// Serves the page until a signal arrives. One folder that is no run is a folder of runs.
int show_live(const Arguments& arguments) {
  const std::vector<std::string>& roots = arguments.operands;
  if (roots.size() > 1 && fs::path(roots.back()).extension() == ".html") {
    throw UsageError(fmt::format(
        "stepop report: {}: --live writes no file; leave out the file, or --live", roots.back()));
  }
  std::function<std::vector<RunDirectory>()> find_runs;
  std::error_code failed;
  const bool is_folder_of_runs =
      roots.size() == 1 && fs::is_directory(roots.front(), failed) && !is_run(roots.front());
  if (is_folder_of_runs) {
    find_runs = [folder = roots.front()] { return runs_in_folder(folder); };
    if (find_runs().empty()) {
      fmt::print(stderr, "stepop: {}: there is no run yet; each is shown when it is there\n",
                 shown_text(roots.front()));
    }
  } else {
    const std::vector<RunDirectory> runs = roots.size() == 1
                                               ? std::vector{open_run(arguments, roots.front())}
                                               : open_runs(arguments, roots, /*fewest=*/1);
    find_runs = [runs] { return runs; };
  }
  const SignalGuard signals;
  LivePage page(find_runs, {.is_comparison = is_folder_of_runs || find_runs().size() > 1});
  HttpServer server;
  fmt::print("http://127.0.0.1:{}{}\n", server.port(), page.path());
  std::fflush(stdout);
  server.serve([&](const HttpRequest& request) { return page.answer(request); },
               [] { return SignalGuard::received() != 0; });
  return SignalGuard::received() == SIGINT ? 0 : 128 + SignalGuard::received();
}

int report_command(const Arguments& arguments, const ReportFlags& own) {
  if (own.live) return show_live(arguments);
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
    report_command, ReportFlags,
    {.name = "report",
     .group = CommandGroup::kOneRun,
     .operands = "logs/<time>_<name> [...] [FILE.html]",
     .fewest = 1,
     .most = 51,
     .about = "one HTML file about a run, or about several: curves, pictures, config, evaluations",
     .takes = "project",
     .example = "stepop report logs/<time>_digits digits.html\n"
                "stepop report logs/*_a logs/*_b comparison.html\n"
                "stepop report --live logs"});

}  // namespace

}  // namespace stepop
