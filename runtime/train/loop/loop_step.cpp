// One step of a TrainingLoop: its batches and their train ops.
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "runtime/core/measure/profile.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/training_loop.h"

namespace stepop {
namespace {

/// Makes `means`, of `before` examples, those over a further part of `examples`.
void add_part(Scalars& means, double before, const Scalars& part, double examples) {
  for (const auto& [name, scalar] : part) {
    const Scalar* earlier = means.find(name);
    means.set(name,
              earlier == nullptr ? scalar : mean_of(name, *earlier, before, scalar, examples));
  }
}

}  // namespace

void TrainingLoop::train_step() {
  const Elapsed next{position_.global_step + 1, last_.minutes};
  begin_step(next);
  SplitStep& train = splits_["train"];
  const int64_t batches = std::min(settings_.accumulate, batches_per_epoch_ - position_.batch);
  clock_.step_examples = train_examples(batches);
  // A GPU reports too late that an update was left out.
  const bool keeps_statistics = context_.on_nan == OnNan::kSkip && context_.device.is_cpu();
  const int64_t skipped_before = keeps_statistics ? skipped_updates() : 0;
  if (keeps_statistics) finite_statistics_.keep();
  int64_t own_examples = 0;
  clock_.micro_batch = 0;
  for (batch_of_step_ = 0; batch_of_step_ < batches; ++batch_of_step_) {
    own_examples += run_batch(train, batches);
  }
  share_of_step_ = static_cast<double>(own_examples) / static_cast<double>(clock_.step_examples);
  logs_.end_step(static_cast<double>(clock_.batch_examples), share_of_step_);
  if (keeps_statistics && skipped_updates() > skipped_before) finite_statistics_.restore();
  end_step();
}

/// Everything before the first batch of the step that ends at `next`.
void TrainingLoop::begin_step(const Elapsed& next) {
  hooks_.begin_step(last_, next);
  if (!position_.has_begun_step) {
    if (position_.batch == 0) {
      hooks_.call("before_epoch", [&](Hook& hook) { hook.before_epoch(position_.epoch); });
    }
    hooks_.call_in_step("before_step",
                        [&](Hook& hook) { hook.before_step(position_.global_step); });
    position_.has_begun_step = true;
  }
  splits_.begin();
  if (context_.on_nan == OnNan::kStop) {
    if (non_finite_.is_full()) read_non_finite();
    non_finite_.begin_step(splits_["train"].stream_state());
  }
  session_.freezing().begin_step(position_.global_step);
  logs_.begin_step(last_, next);
  clock_.global_step = position_.global_step;
  world_.set_step(position_.global_step);
}

/// The number of examples in the next `batches` of the epoch, over all processes.
int64_t TrainingLoop::train_examples(int64_t batches) const {
  const BatchOrder& order = context_.splits.order("train");
  return order.examples_in(position_.batch + batches, position_.epoch) -
         order.examples_in(position_.batch, position_.epoch);
}

/// Fetches the next batch of a step of `batches` and trains on it; returns how many examples of it
/// are this process's.
int64_t TrainingLoop::run_batch(SplitStep& train, int64_t batches) {
  const int64_t examples = train_examples(1);
  const int64_t own_examples = context_.slice().length(examples);
  clock_.batch_examples = own_examples;
  clock_.counts = own_examples > 0;
  share_ = {.own = static_cast<double>(own_examples) / static_cast<double>(clock_.step_examples),
            .all = static_cast<double>(examples) / static_cast<double>(clock_.step_examples)};
  train.begin();
  is_whole_ = batch_of_step_ == 0;
  const auto asked = Telemetry::Clock::now();
  const Batch batch = train.batch();  // fetches the batch
  const auto waited = Telemetry::Clock::now() - asked;
  logs_.telemetry().add_wait(waited);
  data_wait_.add(waited);
  is_whole_ = false;
  hooks_.call_in_step("before_batch", [&](Hook& hook) { hook.before_batch(batch); });
  const int64_t skipped = skipped_updates();
  train_batch(train, batches, batch);
  if (bad_data_.empty() && skipped_updates() > skipped) bad_data_ = bad_data_of_step(batch);
  hooks_.call_in_step("after_batch", [&](Hook& hook) { hook.after_batch(batch, results_); });
  ++position_.batch;
  position_.samples_seen += world_.is_alone() ? batch.size() : examples;
  return own_examples;
}

/// Shares and averages what the step changed, and counts it.
void TrainingLoop::end_step() {
  clock_.micro_batch = 0;
  clock_.counts = true;
  if (!world_.is_alone()) {
    const Span span(profile_, "buffers of the other processes");
    shared_buffers_.share(share_of_step_);
  }
  const int64_t step = position_.global_step;
  context_.networks.update_averages(step, settings_.swa.is_due({step, 0}, {step + 1, 0}));
  ++position_.global_step;
  position_.has_begun_step = false;
  for (const auto& text : update_watch_->after_step(position_.global_step)) {
    reporter_.console().warn(text);
  }
}

/// Runs the train ops on a batch of a step of `batches`, in parts where memory ran out before.
void TrainingLoop::train_batch(SplitStep& train, int64_t batches, const Batch& batch) {
  const int64_t parts = std::clamp<int64_t>(batch.size(), 1, parts_of_batches());
  clock_.micro_batches = batches * parts;
  results_.clear();
  is_in_train_op_ = true;
  if (captured_step_) {
    std::vector<std::string> due;
    for (const auto& op : settings_.train_ops) {
      if (op.is_due_in_step_after(position_.global_step)) due.push_back(op.name.op);
    }
    if (!due.empty()) results_ = captured_step_->run(train, batch, due);
  } else {
    run_train_ops(train, batch, parts);
  }
  is_in_train_op_ = false;
  for (const auto& op : settings_.train_ops) {
    const Scalars* result = results_.find(op.name.op);
    if (result != nullptr) session_.train_means().add(op.name.text(), *result, share_);
  }
}

void TrainingLoop::run_train_ops(SplitStep& train, const Batch& batch, int64_t parts) {
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = batch.size() * part / parts;
    const int64_t end = batch.size() * (part + 1) / parts;
    if (parts > 1) {
      train.take_part(batch, begin, end);
      clock_.batch_examples = end - begin;
    }
    clock_.micro_batch = batch_of_step_ * parts + part;
    for (const auto& op : settings_.train_ops) {
      if (!op.is_due_in_step_after(position_.global_step)) continue;
      if (parts == 1) {
        results_.set(op.name.op, train.train(op.name.op));
      } else {
        add_part(results_[op.name.op], static_cast<double>(begin), train.train(op.name.op),
                 static_cast<double>(end - begin));
      }
    }
    logs_.run_part();
  }
}

}  // namespace stepop
