#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tools/report/http_server.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// A report about one run, or about several, that is made anew when files of the runs changed and
/// somebody looks at it. A thread of its own reads the runs, writes nothing and takes no lock, and
/// rests for ten times as long as it worked: a training beside it does not notice.
class LivePage {
 public:
  struct Options {
    bool is_comparison = false;              ///< A page about several runs, even for one.
    std::chrono::duration<double> pause{1};  ///< The least time between two looks at the files.
    double rest = 10;                        ///< In multiples of the time of the last look.
  };

  /// `find_runs` names the runs, in every look anew; it may throw, which becomes a note in the
  /// page. Without `is_comparison` it names one. Makes the first page.
  LivePage(std::function<std::vector<RunDirectory>()> find_runs, Options options);

  /// The path of the page, `/<32 hex digits>/`. It differs in each process and is hard to guess:
  /// every user of the machine may ask at its ports, and a run may be for its owner's eyes only.
  const std::string& path() const { return path_; }

  /// The page at `path()`, its data as JSON, with an ETag, at `data` below; 404 for anything else.
  /// A look at the files begins with a request, when it is time; the answer is what there was
  /// before it, but for the page, which waits for it at most half a second.
  HttpAnswer answer(const HttpRequest& request);

 private:
  using Clock = std::chrono::steady_clock;

  struct Look {
    std::string state;                ///< Changes with the files of the runs.
    std::optional<std::string> data;  ///< Nothing when the state did not change.
    std::string title;
    Clock::duration took{};
  };

  Look look(const std::string& state_before) const;
  void take(Look look);
  void look_again(bool is_page);

  std::function<std::vector<RunDirectory>()> find_runs_;
  Options options_;
  std::string path_;
  std::string state_;
  std::string title_;
  std::string tag_;
  std::shared_ptr<const std::string> data_;
  std::shared_ptr<const std::string> page_;  ///< Null until it is asked for.
  Clock::time_point next_;
  std::future<Look> looking_;
};

/// The runs that `stepop report --live FOLDER` shows: those directly in the folder, by name, at
/// most the 50 last ones.
std::vector<RunDirectory> runs_in_folder(const std::string& folder);

}  // namespace stepop
