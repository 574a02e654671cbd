#include "runtime/cli/start_checks.h"

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "runtime/base/text.h"
#include "runtime/config/yaml_text.h"

namespace stepop {
namespace {

/// What the config says is stored in checkpoints and outputs, whose texts are UTF-8.
void check_utf8(const std::string& config) {
  const auto bad = find_bad_byte(config);
  if (!bad) return;
  std::istringstream lines(config);
  std::string line;
  for (int i = 0; i <= bad->line; ++i) std::getline(lines, line);
  throw UsageError(fmt::format(
      "the config has text that is not UTF-8, which checkpoints and outputs cannot hold: {}\n"
      "give that file or folder another name",
      line.substr(line.find_first_not_of(' '))));
}

void check_evaluation(const Arguments& arguments, const RunSource& source,
                      const Settings& settings) {
  if (arguments.train || !(settings.eval_all || settings.eval_forever)) return;
  const char* key = settings.eval_all ? "eval_all" : "eval_forever";
  if (!source.project) {
    throw UsageError(fmt::format("{} takes the checkpoints of a run: name it with -p", key));
  }
  if (arguments.checkpoint) {
    throw UsageError(fmt::format("{} and -c: -c is for one checkpoint", key));
  }
}

}  // namespace

void check_arguments(const Arguments& arguments, const RunSource& source) {
  if (source.base.empty()) {
    throw UsageError("no config given: -b base.yaml, or -p with the folder of a run");
  }
  if (source.project && !is_utf8(source.project->folder_name())) {
    throw UsageError(fmt::format(
        "-p: {}: its name is not UTF-8 text, so no checkpoint can hold it: rename the folder",
        source.project->root()));
  }
  if (arguments.retrain && !arguments.train) {
    throw UsageError("-r takes the weights of a run to train on with them: it needs -t");
  }
  if (arguments.profile && (!arguments.train || arguments.check)) {
    throw UsageError(
        arguments.check
            ? "--check ends before a training that --profile could measure: give one of them"
            : "--profile tells where the time of a training goes: it needs -t");
  }
}

void check_checkpoint(const Arguments& arguments, const RunSource& source, bool has_one) {
  if (has_one) return;
  if (arguments.retrain) {
    throw UsageError(
        source.project ? fmt::format("-r: {}: the run has no checkpoint to take weights from yet",
                                     source.project->root())
                       : "-r takes the weights of a run: name it with -p, or a checkpoint with -c");
  }
  if (!arguments.train && !source.project) {
    throw UsageError("nothing to evaluate: give a run with -p or a checkpoint with -c; -t trains");
  }
}

void check_can_wait(const RunSource& source, const Config& config) {
  if (config.get("eval_forever", false)) return;
  throw UsageError(
      fmt::format("{}: the run has no checkpoint to evaluate yet; --eval_forever true waits for "
                  "those to come",
                  source.project->root()));
}

void check_session(const Arguments& arguments, const RunSource& source, const Session& session) {
  check_evaluation(arguments, source, session.settings());
  check_utf8(session.config_yaml());
  if (!arguments.train && !session.settings().evaluates) {
    throw UsageError("nothing to evaluate: the config has no datasets/validation");
  }
}

}  // namespace stepop
