#include "runtime/loop/non_finite_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/shell_text.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace {

/// A training step by its place: which epoch, and its first batch in there.
struct Place {
  int64_t epoch = 0;
  int64_t batch = 0;
};

/// Where the step with `step` complete ones before it began; a GPU tells of it some steps later.
Place place_of(int64_t step, const Progress& progress, int64_t batches_per_epoch,
               int64_t accumulate) {
  const int64_t steps_per_epoch = (batches_per_epoch + accumulate - 1) / accumulate;
  int64_t step_in_epoch = progress.batch / accumulate - (progress.global_step - step);
  Place place{progress.epoch, 0};
  while (step_in_epoch < 0 && place.epoch > 0) {
    --place.epoch;
    step_in_epoch += steps_per_epoch;
  }
  place.batch = std::max<int64_t>(step_in_epoch, 0) * accumulate;
  return place;
}

/// How many examples the batches before a place have.
int64_t examples_before(const Place& place, const BatchOrder& order) {
  return place.epoch * order.examples_in(order.batches_per_epoch()) +
         order.examples_in(place.batch);
}

}  // namespace

Checkpoint beginning_of_step(const Session& session, const State& random) {
  Checkpoint checkpoint = session.checkpoint();
  for (const auto& [key, tensor] : random) {
    checkpoint.tensors.insert_or_assign(std::string(kRandomState) + "." + key, tensor);
  }
  for (const auto& [name, update] : session.context().updates) {
    checkpoint.tensors.erase(name + ".spoilt");
    for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
      checkpoint.tensors.erase(name + "." + parameter + ".grad");
    }
  }
  return checkpoint;
}

std::string record_non_finite(const NonFinite& error, const RunDirectory& directory,
                              const BatchOrder& order, Checkpoint state, int64_t micro_batch,
                              int64_t accumulate) {
  Progress& progress = state.progress;
  const int64_t batches = order.batches_per_epoch();
  const int64_t seen = examples_before({progress.epoch, progress.batch}, order);
  progress.batch -= micro_batch;
  const Place place = place_of(error.global_step(), progress, batches, accumulate);
  progress.samples_seen -= seen - examples_before(place, order);
  progress.global_step = error.global_step();
  progress.epoch = place.epoch;
  progress.batch = place.batch;
  const int64_t end = std::min(place.batch + accumulate, batches);
  nlohmann::ordered_json record;
  record["step"] = error.global_step() + 1;
  record["epoch"] = place.epoch;
  record["update"] = error.update();
  record["found"] = error.finding();
  record["dataset"] = order.name();
  record["batches"] = nlohmann::ordered_json::array();
  for (int64_t batch = place.batch; batch < end; ++batch) {
    record["batches"].push_back(order.indices(place.epoch * batches + batch));
  }
  const std::string folder =
      fmt::format("{}/train/non_finite/{}", directory.root(), error.global_step() + 1);
  std::string text = error.what();
  try {
    make_folders(folder);
    write_file_atomically(folder + "/batch.json", record.dump() + "\n");
    text +=
        fmt::format("\nthe indices of its examples: {}/batch.json\nthe state before its update: {}",
                    folder, save_checkpoint(folder, state));
  } catch (const std::exception& failed) {
    text += "\nwhat would help to look at it could not be saved: " + error_text(failed);
  }
  return text + fmt::format(
                    "\ngo on from its last checkpoint, with a key changed (else it ends the same "
                    "way):  {} --path/key VALUE",
                    resume_command(directory.root()));
}

}  // namespace stepop
