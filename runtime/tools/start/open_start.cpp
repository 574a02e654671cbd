#include "runtime/tools/start/open_start.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "runtime/core/system/folders.h"
#include "runtime/tools/migrate/from_dlas.h"
#include "runtime/tools/start/shared_start.h"
#include "runtime/train/checkpoint/shared_state.h"
#include "runtime/train/distributed/processors.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Gives all processes the checkpoint that rank 0 has read.
void share_checkpoint(World& world, std::optional<ChosenCheckpoint>& chosen) {
  std::optional<Checkpoint> read;
  if (chosen) read = chosen->checkpoint;
  const std::string path = world.from_root([&] { return chosen ? chosen->path : std::string(); });
  auto shared = broadcast_checkpoint(world, std::move(read));
  if (!world.is_root() && shared) chosen = ChosenCheckpoint{path, std::move(*shared)};
}

void bind_to_processors(const World& world, Console& console) {
  if (world.is_alone() || !bind_to_share(world.place()).empty()) return;
  console.warn(fmt::format(
      "distributed/bind: {} processes of this machine have fewer processors: none is bound",
      world.place().local_size));
}

}  // namespace

OpenedStart open_start(const Arguments& arguments, std::optional<RunSource> known, World& world,
                       Console& console) {
  world.check_same("the command line", arguments.command_line);
  if (arguments.resume) {
    world.check_same("the run that --resume found", arguments.project.value_or("none"));
  }
  OpenedStart opened{.time = time_name(), .is_resuming = continues_run(arguments)};
  if (world.is_root()) {
    opened.source = known ? std::move(*known) : find_source(arguments);
    check_arguments(arguments, opened.source);
    const bool is_trained = opened.is_resuming && arguments.train && !arguments.check;
    if (is_trained) lock_run(opened, *opened.source.project);
    opened.checkpoint = choose_checkpoint(arguments, opened.source, console);
    check_checkpoint(arguments, opened.source, opened.checkpoint.has_value());
    if (!opened.source.base.empty()) opened.source.read_files();
    opened.run = read_run_config(arguments, opened.source);
  }
  share_config(world, arguments, opened.source, opened.run);
  share_checkpoint(world, opened.checkpoint);
  const Config& config = opened.run.config;
  refuse_dlas(config);
  opened.name = world.from_root([&] { return run_name(arguments, opened.source.project, config); });
  const bool is_of_file = arguments.predicts && !arguments.project;  // the weights are in the file
  if (world.is_root() && !arguments.train && !opened.checkpoint && !is_of_file) {
    check_without_checkpoint(opened.source, config);
  }
  if (config.has("distributed/timeout")) {
    world.set_time_limit(read_seconds(config, "distributed/timeout"));
  }
  if (own_key<bool>(config, "distributed/bind")) bind_to_processors(world, console);
  return opened;
}

void lock_run(OpenedStart& opened, const RunDirectory& directory) {
  make_folders(fs::path(directory.process_file()).parent_path().string());
  // Evaluations beside the training write neither.
  for (const auto& path : {directory.process_file(), directory.metrics_file()}) {
    std::error_code failed;
    const auto time = fs::last_write_time(path, failed);
    if (!failed && (!opened.run_ended || time > *opened.run_ended)) opened.run_ended = time;
  }
  opened.lock = std::make_unique<RunLock>(directory.process_file(), opened.time);
}

}  // namespace stepop
