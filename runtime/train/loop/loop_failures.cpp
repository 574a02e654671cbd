// What a TrainingLoop does when numbers are not finite, and when it ends by an error.
#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/device_memory.h"
#include "runtime/train/checks/non_finite_data.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/step/out_of_memory.h"

namespace stepop {

/// What is not finite in the data of a step whose last batch is at hand; those before it are loaded
/// again.
std::string TrainingLoop::bad_data_of_step(const Batch& batch) const {
  std::string text = non_finite_data(batch);
  const BatchOrder& order = context_.splits.order("train");
  try {
    for (int64_t i = 1; i <= batch_of_step_ && text.empty(); ++i) {
      const int64_t number = position_.epoch * batches_per_epoch_ + position_.batch - i;
      text = non_finite_data(context_.splits.batch("train", order, number));
    }
  } catch (const std::exception&) {
    // The data that cannot be loaded again were loaded before.
  }
  return text.empty() ? "" : context_.config.error("datasets/train", text).what();
}

/// Before what is logged or saved could be of a training that went wrong.
void TrainingLoop::read_non_finite() {
  for (const auto& [name, update] : context_.updates) {
    if (const auto text = update->read_uncounted(); !text.empty()) reporter_.console().warn(text);
    const std::string warning = update->read_non_finite();
    if (warning.empty()) continue;
    const std::string data = std::exchange(bad_data_, "");
    reporter_.console().warn(data.empty() ? warning : data + "\n" + warning);
  }
  non_finite_.all_read();
}

/// Whether memory ran out in a train op, and smaller parts of batches may fit.
bool TrainingLoop::splits_after(const std::exception& error) {
  if (!settings_.splits_batches || !is_in_train_op_ || !world_.is_alone()) return false;
  if (!is_out_of_memory(error_text(error))) return false;
  const int64_t parts = 2 * parts_of_batches();
  if (parts > context_.splits.order("train").batch_size()) return false;
  const std::string message = error_text(error);
  rewind_ = Rewind{
      .reason = fmt::format(
          "step {}: no memory is left ({}): each batch is now trained in {} parts, "
          "whose gradients add up to the same",
          with_thousands(position_.global_step + 1), message.substr(0, message.find('\n')), parts),
      .position = position_};
  rewind_->position.batch_parts = parts;
  // What the step holds would be in the way of the next start.
  splits_.clear();
  results_.clear();
  give_back_memory(context_.device);
  return true;
}

/// Ends the training by the current exception.
void TrainingLoop::fail() {
  reporter_.console().end_progress();
  // The training ends by the first error, which may be this very error.
  try {
    reporter_.finish_files();
  } catch (const std::exception&) {
  }
  try {
    checkpoints_.wait();  // the message depends on which checkpoints exist
  } catch (const std::exception&) {
  }
  save_what_is_whole();
  try {
    if (!world_.is_root()) throw;  // rank 0 writes the data that help to examine it
    std::rethrow_exception(
        ending_error(saved_, non_finite_, directory_, splits_["train"].batch_at_hand()));
  } catch (const std::exception& error) {
    hooks_.call("at_exception", [&](Hook& hook) { hook.at_exception(error); });
    throw;
  }
}

/// Called before a training ends by an error: saves what would be lost, and records that in
/// `saved_`.
void TrainingLoop::save_what_is_whole() {
  if (!world_.is_alone()) return;  // the others may be within a step
  const int64_t step = position_.global_step;
  if (!is_whole_ || step == first_step_ || checkpoints_.last_step() == step) return;
  try {
    write_checkpoint();
    checkpoints_.wait();
    saved_ = saved_text(step);
  } catch (const std::exception& failed) {
    saved_ = fmt::format("\nthe state after step {} could not be saved: {}", with_thousands(step),
                         error_text(failed));
    return;
  }
  const std::string path = directory_.checkpoints() + "/" + checkpoint_name(step);
  try {
    hooks_.call_forked("after_checkpoint", [&](Hook& hook) { hook.after_checkpoint(path); });
  } catch (const std::exception& failed) {
    saved_ += fmt::format("\n{}", error_text(failed));
  }
}

}  // namespace stepop
