#include "runtime/train/session/non_finite_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/data/batch_source.h"
#include "runtime/train/checks/non_finite_data.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// How to resume; the state alone leads to the same NaN.
std::string what_next(const Session& session, const RunDirectory& directory) {
  const bool has_checkpoint = !checkpoint_steps(directory.checkpoints()).empty();
  const bool has_code = session.config().peek("code") != nullptr;
  return fmt::format(
      "\n{} with a key changed, or it ends the same way:  {} --path/key VALUE{}",
      has_checkpoint ? "resume from its last checkpoint" : "nothing was saved yet; start again",
      resume_command(directory.root()),
      has_code ? "\nif you fixed your own code, add --current-code: without it the run uses its "
                 "copy of that"
               : "");
}

}  // namespace

void NonFiniteRecorder::begin_step(std::function<std::string()> stream) {
  const Position& position = session_.position();
  beginnings_.push_back({position.global_step, position.epoch, position.batch,
                         position.samples_seen, GeneratorCopies(session_.context().device),
                         std::move(stream)});
}

/// The state of the session, as far as it can be restored: without gradients that wait for their
/// update.
Checkpoint NonFiniteRecorder::checkpoint_at(const Beginning& beginning) const {
  Checkpoint checkpoint = session_.checkpoint();
  for (const auto& [key, tensor] : beginning.random.state()) {
    checkpoint.tensors.insert_or_assign(std::string(kRandomState) + "." + key, tensor);
  }
  for (const auto& [name, update] : session_.context().updates) {
    checkpoint.tensors.erase(name + ".spoilt");
    for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
      checkpoint.tensors.erase(name + "." + parameter + ".grad");
    }
  }
  Progress& progress = checkpoint.progress;
  progress.global_step = beginning.global_step;
  progress.epoch = beginning.epoch;
  progress.batch = beginning.batch;
  progress.samples_seen = beginning.samples_seen;
  progress.has_begun_step = true;
  if (const std::string state = stream_at(beginning); !state.empty()) {
    progress.streams["train"] = state;
  }
  return checkpoint;
}

std::string NonFiniteRecorder::stream_at(const Beginning& beginning) const {
  if (beginning.stream) return beginning.stream();
  const auto& streams = session_.position().streams;
  const auto begin = streams.find("train");
  return begin == streams.end() ? "" : begin->second;
}

std::string NonFiniteRecorder::batches_text(const NonFinite& error,
                                            const Beginning& beginning) const {
  const BatchOrder& order = session_.context().splits.order("train");
  const int64_t batches = order.batches_per_epoch();
  nlohmann::ordered_json record;
  record["step"] = beginning.global_step + 1;
  record["epoch"] = beginning.epoch;
  record["update"] = error.update();
  record["found"] = error.finding();
  record["dataset"] = order.name();
  record["batches"] = nlohmann::ordered_json::array();
  const int64_t end = std::min(beginning.batch + session_.settings().accumulate, batches);
  for (int64_t batch = beginning.batch; batch < end; ++batch) {
    record["batches"].push_back(order.indices(beginning.epoch * batches + batch));
  }
  const auto names = session_.context().splits.record_names(
      "train",
      {.batch = beginning.epoch * batches + beginning.batch, .state = stream_at(beginning)},
      end - beginning.batch);
  if (!names.empty()) record["records"] = names;
  return write_json(record) + "\n";
}

std::string NonFiniteRecorder::data_text(const NonFinite& error, const Beginning& beginning,
                                         const Batch* batch) const {
  const Context& context = session_.context();
  std::string text = batch != nullptr ? non_finite_data(*batch) : "";
  // A GPU reports a NaN some steps later.
  const bool is_that_batch = batch != nullptr && error.value().has_value() &&
                             context.world_size == 1 && session_.settings().accumulate == 1;
  if (!is_that_batch && stream_at(beginning).empty()) {
    text.clear();
    const BatchOrder& order = context.splits.order("train");
    const int64_t batches = order.batches_per_epoch();
    const int64_t end = std::min(beginning.batch + session_.settings().accumulate, batches);
    for (int64_t i = beginning.batch; i < end && text.empty(); ++i) {
      text = non_finite_data(context.splits.batch("train", order, beginning.epoch * batches + i));
    }
  }
  return text.empty() ? "" : context.config.error("datasets/train", text).what();
}

ErrorWithCommand NonFiniteRecorder::record(const NonFinite& error, const Batch* batch) const {
  std::string text = error.what();
  const auto found = std::find_if(
      beginnings_.begin(), beginnings_.end(),
      [&](const Beginning& beginning) { return beginning.global_step == error.global_step(); });
  if (found != beginnings_.end()) {
    try {
      const std::string data = data_text(error, *found, batch);
      if (!data.empty()) text = data + "\n" + error.what();
    } catch (const std::exception&) {
      // The data were loaded before; an error now does not matter.
    }
    const std::string folder =
        fmt::format("{}/train/non_finite/{}", directory_.root(), error.global_step() + 1);
    try {
      make_folders(folder);
      write_file_atomically(folder + "/batch.json", batches_text(error, *found));
      text += fmt::format("\nthe indices of its examples: {}/batch.json", folder);
      const Checkpoint before = checkpoint_at(*found);
      check_weights(before.tensors, session_.finite_names(), before.progress.global_step);
      text += "\nthe state before its update: " + save_checkpoint(folder, before);
    } catch (const NonFiniteWeights& already) {
      text += fmt::format("\nthe cause is older: {}", already.what());
    } catch (const std::exception& failed) {
      text += "\nwhat would help to look at it could not be saved: " + error_text(failed);
    }
  }
  return with_what_next(text);
}

ErrorWithCommand NonFiniteRecorder::with_what_next(const std::string& text) const {
  return ErrorWithCommand(text + what_next(session_, directory_));
}

}  // namespace stepop
