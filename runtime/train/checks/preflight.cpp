#include "runtime/train/checks/preflight.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/eval_schema.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/device_memory.h"
#include "runtime/data/batch_source.h"
#include "runtime/train/checks/non_finite_data.h"
#include "runtime/train/checks/parameter_ownership.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/step/batch_mistakes.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/out_of_memory.h"
#include "runtime/train/step/random_fork.h"
#include "runtime/train/step/snapshot.h"
#include "runtime/train/step/value_checks.h"

namespace stepop {
namespace {

/// One batch that the preflight tries.
struct Sample {
  const BatchOrder& order;
  int64_t number = 0;
  bool is_training = false;   ///< A training step sees the batch.
  bool is_evaluated = false;  ///< An evaluation sees the batch.
};

/// The results of the ops.
struct Seen {
  std::set<std::string> names;    ///< Names of numbers.
  std::set<std::string> log_ops;  ///< Log ops that were returned.
  std::vector<std::string> warnings;
  std::vector<EvaluatedBatch> evaluated;  ///< The first of each evaluation that has callbacks.
};

bool is_default_log_op(const Settings& settings, const std::string& name) {
  return std::ranges::any_of(settings.log_ops, [&](const ScheduledOp& op) {
    return op.is_default && op.name.text() == name;
  });
}

/// Runs the ops of a split that are ever called for such a batch; adds their results to `seen`.
void check_ops(const Settings& settings, const DueOps& due, const Sample& sample,
               Iterator& iterator, const Context& context, Position& position, const Batch& batch,
               Seen& seen) {
  const bool is_train = due.split == "train" && sample.is_training;
  const StepOps ops = call_step_op(iterator, context, position, due.split, is_train, batch);
  // An op of a GPU that fails is told at the next wait: here, where it says of which op.
  const auto wait = [&] {
    const at::Device& device = context.device;
    if (!device.is_cpu())
      c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
  };
  run_at(due.split, "step_op", wait);
  const SplitGuard guard(position, due.split);
  const at::NoGradGuard no_grad;
  for (const auto& name : due.train) {
    if (ops.find_train_op(name) == nullptr) throw missing_op(context, due.split, name, ops);
  }
  for (const auto& name : due.log) {
    if (!sample.is_training) break;
    const std::string place = due.split + "/" + name;
    const LogOp* op = ops.find_log_op(name);
    if (op == nullptr && is_default_log_op(settings, place)) continue;
    if (op == nullptr) throw missing_log_op(context, due.split, name, ops);
    seen.log_ops.insert(place);
    const Logs logs = run_op(context, due.split, name, [&] { return checked((*op)(), place); });
    run_at(due.split, name, wait);
    for (const auto& [key, value] : logs.scalars) seen.names.insert(place + "/" + key);
  }
  for (const auto& name : due.eval) {
    if (!sample.is_evaluated) break;
    const EvalOp* op = ops.find_eval_op(name);
    if (op == nullptr) throw missing_op(context, due.split, name, ops);
    const EvalOutputs outputs = run_op(context, due.split, name, [&] {
      EvalOutputs result = (*op)();
      check_eval_outputs(result, batch.size());
      return result;
    });
    run_at(due.split, name, wait);
    for (const auto& evaluation : settings.evaluations) {
      if (evaluation.op.split != due.split || evaluation.op.op != name) continue;
      const std::string place = evaluation.place + "/eval_callbacks";
      EvaluationCallbacks(context.config, place)
          .check_keys(outputs, batch, context.splits.dataset(due.split));
      const bool is_first = std::ranges::none_of(seen.evaluated, [&](const auto& each) {
        return each.evaluation.place == evaluation.place;
      });
      if (is_first && !context.config.at(place).keys().empty()) {
        seen.evaluated.push_back({evaluation, outputs, batch.size()});
      }
      for (const auto& [key, value] : outputs.labels) {
        seen.names.insert(evaluation.prefix() + "/" + key);
      }
    }
  }
}

/// The same with as large a part of a training batch as fits into the memory, where the config lets
/// batches be divided (`on_out_of_memory: split`); the position keeps in how many parts.
void check_parts(const Settings& settings, const DueOps& due, const Sample& sample,
                 Iterator& iterator, const Context& context, Position& position, const Batch& batch,
                 Seen& seen) {
  const bool may_split = settings.splits_batches && sample.is_training && due.split == "train" &&
                         context.world_size == 1;
  if (!may_split) {
    return check_ops(settings, due, sample, iterator, context, position, batch, seen);
  }
  const int64_t before = position.batch_parts;
  for (int64_t& parts = position.batch_parts;; parts *= 2) {
    try {
      const int64_t rows = std::max<int64_t>(1, batch.size() / parts);
      check_ops(settings, due, sample, iterator, context, position,
                parts == 1 ? batch : batch.rows(0, rows), seen);
      if (parts != before) {
        seen.warnings.push_back(
            fmt::format("no memory is left for a whole batch: each batch is trained in {} parts, "
                        "whose gradients add up to the same",
                        parts));
      }
      return;
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      if (!is_out_of_memory(error.what()) || 2 * parts > batch.size()) throw;
      give_back_memory(context.device);
    }
  }
}

/// The same for the sample's batch; an error says what in the batch caused it.
void check_batch(const Settings& settings, const DueOps& due, const Sample& sample,
                 Iterator& iterator, const Context& context, Position& position, Seen& seen) {
  const Batch batch = run_at("datasets", due.split, [&] {
    return context.splits.batch(due.split, sample.order, sample.number);
  });
  if (const std::string text = non_finite_data(batch); !text.empty()) {
    seen.warnings.push_back(context.config.error("datasets/" + due.split, text).what());
  }
  // A GPU that has failed cannot be asked for them any more.
  const std::string integers = context.device.is_cpu() ? "" : integers_text(batch);
  try {
    check_parts(settings, due, sample, iterator, context, position, batch, seen);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    const std::string more = batch_mistake_text(error.what(), context.networks, due.split, batch) +
                             out_of_memory_text(error.what(), context, due.split, batch);
    if (more.empty()) throw;
    const bool has_failed =
        std::string_view(error.what()).find("device-side assert") != std::string_view::npos;
    throw Error(error.what() + more + (has_failed ? integers : ""), error.exit_code());
  }
}

/// The batches to try: the first batch of an epoch, and of an evaluation where the size differs;
/// the last batches where they are smaller, because code with a fixed batch size fails there.
std::vector<Sample> samples_of(const DueOps& due, const Settings& settings, const Context& context,
                               const Position& position) {
  const BatchOrder& order = context.splits.order(due.split);
  std::vector<Sample> samples;
  if (due.is_in_training()) samples.push_back({order, 0, /*is_training=*/true});
  for (const auto& evaluation : settings.evaluations) {
    if (evaluation.op.split != due.split) continue;
    const BatchOrder& of = context.splits.evaluation_order(due.split, evaluation.max_batches);
    if (samples.empty() || samples.back().order.batch_size() != of.batch_size()) {
      samples.push_back({of, 0});
    }
    samples.back().is_evaluated = true;
  }
  const auto add_smaller = [&](const BatchOrder& of, bool is_training) {
    const int64_t last = of.batches_per_epoch() - 1;
    const int64_t size = of.examples_in(last + 1) - of.examples_in(last);
    const bool is_known = std::ranges::any_of(samples, [&](const Sample& sample) {
      return sample.number == last && sample.is_training == is_training;
    });
    if (last > 0 && size < of.batch_size() && !is_known) {
      samples.push_back({of, last, is_training, !is_training});
    }
  };
  const int64_t batches_left = order.batches_per_epoch() - position.batch;
  const bool ends_epoch = settings.num_steps - position.global_step >=
                          (batches_left + settings.accumulate - 1) / settings.accumulate;
  if (!due.train.empty() && ends_epoch) add_smaller(order, true);
  for (const auto& evaluation : settings.evaluations) {
    if (evaluation.op.split != due.split) continue;
    add_smaller(context.splits.evaluation_order(due.split, evaluation.max_batches), false);
  }
  return samples;
}

/// Rethrows the current exception, with the information that the batch was a smaller last batch.
[[noreturn]] void rethrow_of_last_batch(const Sample& sample) {
  try {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    const int64_t size =
        sample.order.examples_in(sample.number + 1) - sample.order.examples_in(sample.number);
    throw Error(
        fmt::format("{}\nwith the last batch of an {}, which has {} of {} examples{}", error.what(),
                    sample.is_training ? "epoch" : "evaluation", size, sample.order.batch_size(),
                    sample.is_training ? "; drop_last: true leaves it out" : ""),
        error.exit_code());
  }
}

}  // namespace

Findings preflight(Settings& settings, bool train, Iterator& iterator, const Context& context,
                   Position& position) {
  check_devices(context);
  if (train) {
    check_all_trained(context);
    check_all_saved(context);
    watch_losses(context);
  }
  const RandomFork fork(context.seed, context.device);
  const Snapshot snapshot(context);
  const ValueChecks checks;
  Seen seen;
  ConvolutionCount convolutions;
  std::optional<ConvolutionCounter> counter(convolutions);
  for (const auto& due : due_ops(settings, train)) {
    for (const auto& sample : samples_of(due, settings, context, position)) {
      try {
        check_batch(settings, due, sample, iterator, context, position, seen);
      } catch (const Error&) {
        if (sample.number == 0) throw;
        rethrow_of_last_batch(sample);
      }
    }
  }
  counter.reset();
  snapshot.restore();
  std::erase_if(settings.log_ops, [&](const ScheduledOp& op) {
    return op.is_default && !seen.log_ops.contains(op.name.text());
  });
  return {{seen.names.begin(), seen.names.end()},
          std::move(seen.warnings),
          std::move(seen.evaluated),
          convolutions};
}

}  // namespace stepop
