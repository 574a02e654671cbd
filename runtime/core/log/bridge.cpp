#include "runtime/core/log/bridge.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/log/log_kinds.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/python.h"
#include "runtime/core/system/folders.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostWait = 86'400;
constexpr int kPollMilliseconds = 20;
constexpr const char* kBesideOption = "--beside";

/// Puts the package of this version before any that Python would find.
std::vector<std::string> environment_with(const std::string& package) {
  if (package.empty()) return {};
  const char* given = std::getenv("PYTHONPATH");
  const std::string others = given == nullptr || *given == '\0' ? "" : ":" + std::string(given);
  return {"PYTHONPATH=" + package + others};
}

/// How a process ended; empty after a success.
std::string ending(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : fmt::format("ended with exit status {}", code);
}

/// The last line that the process printed: the reason, and at its end the advice; empty without any
/// line.
std::string last_line_of(const std::string& path) {
  constexpr size_t kMost = 4000;  // a server may answer with a page
  try {
    const auto lines = last_lines(path);
    return lines.empty() ? "" : ": " + shortened(lines.back(), kMost);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

void BridgeParams::declare(Parameters& p) {
  IntegrationParams::declare(p);
  kinds.declare(p, "list of scalars, images, audio, texts: what is sent; null: all");
  p.add("python", python, "the Python, by default that of the tree's .venv, else on the PATH");
  p.add("wait", wait, "for how many seconds the end of a training waits for the rest",
        at_least(0).at_most(kMostWait));
}

Bridge::Bridge(std::string name, const BridgeParams& params)
    : name_(std::move(name)),
      python_(find_python(params.python.value_or(""))),
      wait_(params.wait) {}

void Bridge::begin(const SinkStart& start) {
  run_ = fs::path(start.folder).parent_path().string();
  output_ = fmt::format("{}/{}/log.txt", run_, name_);
  try {
    make_folders(run_ + "/" + name_);
    child_ = start_beside({python_, "-m", "stepop.eval." + name_, kBesideOption, run_}, output_,
                          environment_with(find_python_package()));
  } catch (const Error& error) {
    failure_ = fmt::format("could not be started: {}", error.what());
  }
}

std::string Bridge::mend() {
  if (has_warned_) return "";
  std::string what = failure_;
  if (child_ && child_->has_ended()) {
    const std::string how = ending(child_->status());
    if (!how.empty()) what = how + last_line_of(output_);
  }
  if (what.empty()) return "";
  has_warned_ = true;
  const std::string package = find_python_package();
  return fmt::format(
      "integrations/{}: its process {}\n(that does not stop the training; see {}; all of the run "
      "can be sent "
      "later:  {}{} -m stepop.eval.{} {})",
      name_, what, output_, package.empty() ? "" : "PYTHONPATH=" + shell_word(package) + " ",
      shell_word(python_), name_, shell_word(run_));
}

std::string Bridge::finish(const std::function<void(const std::string&)>& waiting) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  bool has_said = false;
  while (child_ && !child_->has_ended()) {
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited >= std::chrono::seconds(wait_)) {
      if (wait_ > 0) {
        waiting(fmt::format(
            "{} does not have everything yet; the rest is sent without this process: see {}", name_,
            output_));
      }
      break;
    }
    if (!has_said && waited.count() > 1) {
      waiting(fmt::format("waiting until {} has the rest, at most {} s", name_, wait_));
      has_said = true;
    }
    ::poll(nullptr, 0, kPollMilliseconds);
  }
  return mend();
}

namespace {

/// stepop.eval.wandb reads the keys again, and follows them.
class Wandb : public Bridge {
 public:
  struct Params : BridgeParams {
    std::optional<std::string> project, entity, group;
    std::string mode = "online";

    void declare(Parameters& p) {
      BridgeParams::declare(p);
      p.add("project", project, "by default that of WANDB_PROJECT, else uncategorized");
      p.add("entity", entity, "the user or team; by default that of WANDB_ENTITY, else your own");
      p.add("group", group, "what runs are grouped by; by default the name of their sweep");
      p.add("mode", mode, "online, or offline: into the run's wandb/; WANDB_MODE comes first",
            one_of({"online", "offline"}));
    }
  };

  explicit Wandb(const Params& params) : Bridge("wandb", params) {}
};
STEPOP_REGISTER_INTEGRATION(wandb, Wandb,
                            {"Sends the run to Weights & Biases, by their Python package, in a "
                             "process of its own."});

/// As Wandb, by stepop.eval.mlflow.
class Mlflow : public Bridge {
 public:
  struct Params : BridgeParams {
    std::optional<std::string> tracking_uri, experiment;

    void declare(Parameters& p) {
      BridgeParams::declare(p);
      p.add("tracking_uri", tracking_uri,
            "the server or store; by default that of MLFLOW_TRACKING_URI");
      p.add("experiment", experiment, "by default that of MLFLOW_EXPERIMENT_NAME, else Default");
    }
  };

  explicit Mlflow(const Params& params) : Bridge("mlflow", params) {}
};
STEPOP_REGISTER_INTEGRATION(mlflow, Mlflow,
                            {"Sends the run to MLflow, by its Python package, in a process of its "
                             "own."});

}  // namespace
}  // namespace stepop
