#include <fmt/format.h>
#include <time.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/train/iterator/hook.h"

namespace stepop {
namespace {

/// Calls a command or a URL when a training ends or fails, to tell somebody.
class RunCommand : public Hook {
 public:
  struct Params {
    std::optional<std::string> command;
    std::optional<std::string> url;
    std::string on = "both";
    int64_t timeout = 30;

    void declare(Parameters& p) {
      p.add("command", command,
            "for sh, with $STEPOP_RUN, $STEPOP_STATE (done, stopped, failed), $STEPOP_STEP, "
            "$STEPOP_ERROR");
      p.add("url", url, "gets the same as JSON by POST, through curl");
      p.add("timeout", timeout, "seconds", at_least(1));
      p.add("on", on, "end, failure or both", one_of({"end", "failure", "both"}));
    }
  };

  RunCommand(const Params& params, const Config& config, const Context& context)
      : context_(context),
        command_(params.command.value_or("")),
        url_(params.url.value_or("")),
        timeout_(params.timeout),
        at_end_(params.on != "failure"),
        at_failure_(params.on != "end") {
    if (command_.empty() == url_.empty()) {
      throw config.error("command", "give a command or a url, one of them");
    }
  }

  void after_training() override {
    // A training whose config changes continues.
    if (at_end_ && context_.run.ended != "changed") run(context_.run.ended, "");
  }
  void at_exception(const std::exception& error) override {
    if (at_failure_) run("failed", error.what());
  }

 private:
  void run(const std::string& state, const std::string& error) {
    if (context_.rank != 0) return;
    const int64_t step = context_.position.global_step;
    std::vector<std::string> words = {"env", fmt::format("STEPOP_RUN={}", context_.run.folder),
                                      fmt::format("STEPOP_STATE={}", state),
                                      fmt::format("STEPOP_STEP={}", step),
                                      fmt::format("STEPOP_ERROR={}", error)};
    if (url_.empty()) {
      words.insert(words.end(), {"sh", "-c", command_});
    } else {
      const nlohmann::ordered_json json = {{"run", context_.run.name},
                                           {"folder", context_.run.folder},
                                           {"state", state},
                                           {"step", step},
                                           {"error", error}};
      words.insert(words.end(), {"curl", "-fsS", "-H", "Content-Type: application/json", "-d",
                                 write_json(json), url_});
    }
    const std::string what = url_.empty() ? "the command" : "curl";
    const time_t end = ::time(nullptr) + timeout_;
    try {
      const ChildResult result = run_child(words, [&] {
        if (::time(nullptr) > end) throw Interrupted("it took too long");
      });
      if (result.exit_code == 0 && result.signal == 0) return;
      context_.log.warn(fmt::format("RunCommand: {} ended with {}: {}", what,
                                    result.signal != 0 ? 128 + result.signal : result.exit_code,
                                    result.err.empty() ? result.out : result.err));
    } catch (const Interrupted&) {
      context_.log.warn(
          fmt::format("RunCommand: {} took longer than timeout: {} seconds, and was "
                      "ended",
                      what, timeout_));
    } catch (const Error& failure) {
      context_.log.warn(fmt::format("RunCommand: {}", failure.what()));
    }
  }

  const Context& context_;
  std::string command_;
  std::string url_;
  int64_t timeout_;
  bool at_end_;
  bool at_failure_;
};

STEPOP_REGISTER_HOOK(RunCommand, {"Calls a command or a URL when a training ends or fails."});

}  // namespace
}  // namespace stepop
