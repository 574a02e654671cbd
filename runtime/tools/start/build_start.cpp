#include "runtime/tools/start/build_start.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/value/difference.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/notice.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/tools/graph/network_graphs.h"
#include "runtime/tools/start/ranked_by.h"
#include "runtime/tools/trial/dry_run.h"
#include "runtime/tools/trial/repeat_check.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

/// Gives a checkpoint what a training that goes back to it takes along.
void continue_behind(const Rewind& rewind, Progress& progress) {
  progress.batch_parts = rewind.position.batch_parts;
  progress.rewinds = rewind.position.rewinds;
  progress.seconds = rewind.position.seconds;
  if (rewind.leaves_out) progress.take_place_in_data(rewind.position);
}

void restore(const Arguments& arguments, ChosenCheckpoint& chosen, BuiltStart& built) {
  auto& [path, checkpoint] = chosen;
  Session& session = *built.session;
  if (!arguments.train) {
    session.restore_for_evaluation(checkpoint, path);
  } else if (arguments.retrain) {
    session.restore_weights(checkpoint, path);
  } else {
    if (arguments.rewind) continue_behind(*arguments.rewind, checkpoint.progress);
    session.resume(checkpoint, path);
    built.machine = describe_change_of_machine(checkpoint.made_by, session.made_by());
    built.changes = differences_to(checkpoint.config, session);
  }
  checkpoint.tensors.clear();
}

/// Whether the run itself has this checkpoint of this step.
bool is_of_run(const OpenedStart& opened, Session& session) {
  if (!opened.is_resuming) return false;
  const CheckpointFolder own(opened.source.project->checkpoints());
  std::error_code failed;
  return std::filesystem::equivalent(opened.checkpoint->path,
                                     own.path_of(session.position().global_step), failed);
}

/// The line about a config that a file of the run has: how it differs. Empty for other configs.
std::string compare_with_run(const Arguments& arguments, const OpenedStart& opened,
                             const Session& session) {
  if (!opened.is_resuming) return "";
  const std::string& file =
      arguments.takes_change ? arguments.base.front() : opened.source.config_of_run;
  if (file.empty()) return "";
  const std::string changes =
      differences_to(to_yaml(escape_references(resolve_config({file}, {}))), session);
  return "config    " + file + (changes.empty() ? "" : ", but for:\n" + changes);
}

/// Shows the config, unless it was shown when the run began, and what is to be known about it.
void show(const Session& session, bool with_config, bool is_shown, Console& console) {
  if (with_config && is_shown) console.debug(session.config_yaml());
  if (with_config && !is_shown) console.info(session.config_yaml());
  if (!session.warnings().empty()) console.warn(session.warnings());
  if (!session.notices().empty()) console.info(session.notices());
  const Notices notices = split_notices(session.context().splits.notices());
  if (!notices.infos.empty()) console.info(notices.infos);
  if (!notices.warnings.empty()) console.warn(notices.warnings);
}

}  // namespace

std::string differences_to(const std::string& yaml, const Session& session) {
  return describe(
      differences(parse_yaml(yaml, {"", 0}), parse_yaml(session.config_yaml(), {"", 0})));
}

BuiltStart build_start(const Arguments& arguments, OpenedStart& opened, World& world,
                       Console& console) {
  BuiltStart built{.session =
                       std::make_unique<Session>(opened.run.config, arguments.train,
                                                 arguments.debug, arguments.allow_unknown, &world)};
  Session& session = *built.session;
  built.crash = std::make_unique<CrashMessage>();
  built.crash->set_place(session.position().global_step, session.position().split,
                         /*answers=*/world.is_root(), arguments.check ? "the check" : "");
  session.show_log(console);
  session.set_run({.name = opened.name, .is_resuming = opened.is_resuming});
  const bool is_root = world.is_root();
  if (is_root) check_session(arguments, opened.source, session);
  if (opened.checkpoint) {
    restore(arguments, *opened.checkpoint, built);
  } else if (arguments.rewind) {
    session.position().batch_parts = arguments.rewind->position.batch_parts;
  }
  if (is_root && !opened.checkpoint && (arguments.train || !opened.source.project)) {
    built.weights = session.init_weights();
  }
  session.share_beginning();
  built.is_from_elsewhere = world.from_root([&] {
    return opened.checkpoint && !is_of_run(opened, session) ? "1" : "0";
  }) == "1";
  // Another run's evaluation is not this one's to finish.
  if (built.is_from_elsewhere) {
    session.position().evaluation_folder.clear();
    session.position().evaluations.clear();
  }
  session.initialize();
  const char* const ranked_by = std::getenv(kRankedBy);
  session.check(logged_graph, ranked_by == nullptr ? "" : ranked_by);
  throw_if_signal_arrived();
  if (is_root) built.config = compare_with_run(arguments, opened, session);
  show(session, !arguments.check && !arguments.rewind, !built.config.empty(), console);
  return built;
}

int check_start(const Arguments& arguments, const OpenedStart& opened, const BuiltStart& built,
                TensorMemory& memory, Console& console) {
  if (opened.checkpoint) console.info("weights   " + opened.checkpoint->path);
  if (!built.weights.empty()) console.info("init_from " + built.weights);
  try_everything(*built.session, memory, console, arguments.graph);
  const Repeats repeats = arguments.train ? check_repeats(*built.session) : Repeats();
  if (repeats.warning.empty()) return 0;
  console.warn(repeats.warning);
  return repeats.is_from_iterator ? kDoesNotRepeat : 0;
}

void save_beginning(const BuiltStart& built, const RunDirectory& directory) {
  if (!built.is_from_elsewhere) return;
  save_checkpoint(directory.checkpoints(), built.session->checkpoint());
}

}  // namespace stepop
