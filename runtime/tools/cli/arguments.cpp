#include "runtime/tools/cli/arguments.h"

namespace stepop {

Flags common_flags(Arguments& to) {
  using enum Flag::Takes;
  Flags flags;
  flags.add({'n', "name"}, to.name,
            "name of a new run: the end of its folder's name; with -p and without -t, of an "
            "evaluation");
  flags.add({'b', "base"}, to.base, "YAML files; each one overrides the ones before it", kValues);
  flags.add({'t', "train"}, to.train, "train; without it the run is evaluated", kOptionalBool);
  flags.add({'p', "project"}, to.project,
            "the folder of a run: resume it (with -t) or evaluate it");
  flags.add({'c', "checkpoint"}, to.checkpoint,
            "use this checkpoint: a step, latest, best or a path (default: the latest)");
  flags.add({'r', "retrain"}, to.retrain,
            "with -t: take only the weights, start a new run at step 0", kOptionalBool);
  flags.add("resume", to.resume,
            "with -n and -t: resume the newest run of that name in --logs, if there is one",
            kOptionalBool);
  flags.add(
      {'l', "log_level"}, [&to](const std::string& text) { to.log_level = parse_log_level(text); },
      "debug, info (default), warn or critical");
  flags.add(
      "logs", [&to](const std::string& text) { to.logs = text; },
      "the folder of new runs (default: logs)");
  flags.add({'d', "debug"}, to.debug, "a run of 10 steps in logs/debug_runs/", kOptionalBool);
  flags.add("current-code", to.current_code,
            "with -p: use the sources as they are now, not the run's own copy", kOptionalBool);
  flags.add("check", to.check,
            "run every op on one batch and show time, memory and shapes; writes nothing",
            kOptionalBool);
  flags.add("graph", to.graph, "with --check: what each network computes, operation by operation",
            kOptionalBool);
  flags.add("processes", to.processes, "so many processes of this machine share the work");
  flags.add("tuned", to.tuned,
            "auto: a training with the settings that `stepop tune` found for it");
  flags.add("profile", to.profile, "show where the time went when a training ends", kOptionalBool);
  flags.add(
      "json", to.json,
      "for programs: what is made, and errors, as JSON lines; all else goes to standard error",
      kOptionalBool);
  flags.add("allow-unknown", to.allow_unknown, "unknown config keys are a warning, not an error",
            kOptionalBool);
  flags.add({'w', "wandb_sweep"}, to.wandb_sweep,
            "for an agent of Weights & Biases: --a.b=3 is --a/b 3", kOptionalBool);
  flags.add({'h', "help"}, to.help, "this text; after a command, the help of that command");
  flags.add("version", to.version, "the versions of stepop and its libraries");
  return flags;
}

}  // namespace stepop
