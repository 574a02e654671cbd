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

constexpr int64_t kWait = 15;
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

Bridge::Bridge(std::string name, const Config& params)
    : name_(std::move(name)),
      python_(find_python(params.has("python") ? params.get<std::string>("python") : "")),
      wait_(params.get_between("wait", 0, kMostWait, kWait)) {
  const LogKinds checked(params);  // stepop.eval.bridge reads and follows it
}

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

/// Throws UsageError for a key that is neither missing nor a text.
void check_texts(const Config& params, const std::vector<const char*>& keys) {
  for (const char* key : keys) {
    if (params.has(key)) params.get<std::string>(key);
  }
}

STEPOP_REGISTER(
    integrations(), "wandb",
    [](const Config& params) {
      check_texts(params, {"project", "entity", "group"});
      const auto mode = params.get<std::string>("mode", "online");
      if (mode != "online" && mode != "offline") {
        throw params.error("mode", fmt::format("expected online or offline, found \"{}\"", mode));
      }
      return std::make_shared<Bridge>("wandb", params);
    },
    {"Sends the run to Weights & Biases, by their Python package, in a process of its own.",
     {{"active", "false", "whether it is sent"},
      {"handlers", "null", "list of scalars, images, audio, texts: what is sent; null: all"},
      {"project", "null", "the project; by default that of WANDB_PROJECT, else uncategorized"},
      {"entity", "null", "the user or team; by default that of WANDB_ENTITY, else your own"},
      {"group", "null", "what runs are grouped by; by default the name of their sweep"},
      {"mode", "online", "online, or offline: into the run's wandb/; WANDB_MODE comes first"},
      {"python", "python3", "the Python, by default that of the tree's .venv, else on the PATH"},
      {"wait", "15", "for how many seconds the end of a training waits for the rest"}}});

STEPOP_REGISTER(
    integrations(), "mlflow",
    [](const Config& params) {
      check_texts(params, {"tracking_uri", "experiment"});
      return std::make_shared<Bridge>("mlflow", params);
    },
    {"Sends the run to MLflow, by its Python package, in a process of its own.",
     {{"active", "false", "whether it is sent"},
      {"handlers", "null", "list of scalars, images, audio, texts: what is sent; null: all"},
      {"tracking_uri", "null", "the server or store; by default that of MLFLOW_TRACKING_URI"},
      {"experiment", "null", "by default that of MLFLOW_EXPERIMENT_NAME, else Default"},
      {"python", "python3", "the Python, by default that of the tree's .venv, else on the PATH"},
      {"wait", "15", "for how many seconds the end of a training waits for the rest"}}});

}  // namespace
}  // namespace stepop
