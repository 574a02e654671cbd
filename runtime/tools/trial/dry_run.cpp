#include "runtime/tools/trial/dry_run.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <type_traits>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/eval_schema.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/tools/graph/network_graphs.h"
#include "runtime/tools/graph/receptive_field.h"
#include "runtime/tools/trial/describe.h"
#include "runtime/tools/trial/op_measurements.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/float32_modules.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/signals.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/split_step.h"

namespace stepop {
namespace {

int64_t bytes_of(const State& state) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : state) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

/// Indents every line by two columns.
std::string indented(const std::string& lines) {
  std::string text;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    text += "  " + lines.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

/// The most memory of this process at any time, including code and libraries.
double process_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// Runs the parts of a step on one split a few times, and reports them.
class SplitDryRun {
 public:
  /// `order` determines the batch.
  SplitDryRun(Session& session, TensorMemory& memory, const DueOps& due, const BatchOrder& order)
      : session_(session),
        context_(session.context()),
        due_(due),
        order_(order),
        parts_(memory, context_.device) {}

  /// Does the work of a training on the split: train ops, updates, logs.
  void train(Console& console) {
    while (parts_.begin_round()) {
      // As in a training, except that each batch is a step, whatever the value of `accumulate`.
      session_.clock() = {.global_step = session_.position().global_step};
      call_step_op(/*is_training=*/due_.split == "train");
      for (const auto& name : due_.train) run(name, ops_.find_train_op(name));
      if (due_.split == "train") finish_step(console);
      const at::NoGradGuard no_grad;
      for (const auto& name : due_.log) {
        const Logs logs = run(name, ops_.find_log_op(name));
        checked(logs, due_.split + "/" + name);
      }
    }
  }

  /// Does the work of an evaluation on the split.
  void evaluate() {
    const AveragesGuard weights = context_.networks.evaluation_weights();
    const at::NoGradGuard no_grad;
    while (parts_.begin_round()) {
      call_step_op(/*is_training=*/false);
      for (const auto& name : due_.eval) {
        const EvalOutputs outputs = run(name, ops_.find_eval_op(name));
        run_at(due_.split, name, [&] { check_eval_outputs(outputs, batch_.size()); });
      }
    }
  }

  std::string text() {
    const int64_t examples = context_.splits.examples(due_.split);
    return fmt::format(
        "{} of {} examples\n{}", with_thousands(batch_.size()),
        examples > 0 ? with_thousands(examples) : "a stream's",
        indented(describe_batch(batch_) + parts_.table() + returned_.table() + plan()));
  }

  const StepOps& ops() const { return ops_; }

 private:
  std::string plan() {
    if (due_.split != "train" || due_.train.empty()) return "";
    const SplitGuard guard(session_.position(), due_.split);
    const at::NoGradGuard no_grad;
    return run_at(due_.split, "plan", [&] { return session_.iterator().plan(batch_); });
  }

  void call_step_op(bool is_training) {
    throw_if_signal_arrived();
    ops_ = {};
    batch_ = {};
    batch_ = parts_.measure("batch", [&] {
      return run_at("datasets", due_.split,
                    [&] { return context_.splits.batch(due_.split, order_, 0); });
    });
    ops_ = parts_.measure("step_op", [&] {
      return stepop::call_step_op(session_.iterator(), context_, session_.position(), due_.split,
                                  is_training, batch_);
    });
  }

  template <class Op>
  std::invoke_result_t<const Op&> run(const std::string& name, const Op* op) {
    throw_if_signal_arrived();
    if (op == nullptr) throw missing_op(context_, due_.split, name, ops_);
    const SplitGuard guard(session_.position(), due_.split);
    auto result = parts_.measure(name, [&] { return run_op(context_, due_.split, name, *op); });
    returned_.set(name, result);
    return result;
  }

  void finish_step(Console& console) {
    context_.networks.update_averages(session_.position().global_step);
    ++session_.position().global_step;
    for (const auto& [name, update] : context_.updates) {
      const std::string warning = update->read_non_finite();
      if (!warning.empty()) console.warn(warning);
    }
  }

  Session& session_;
  const Context& context_;
  const DueOps& due_;
  const BatchOrder& order_;
  OpMeasurements parts_;
  ReturnedValues returned_;
  Batch batch_;
  StepOps ops_;
};

/// Ops with their own names that `step_op` returns but the config never calls, above all an op that
/// is missing in `log_ops` by mistake.
std::string never_called(const OrderedMap<bool>& returned, const std::vector<DueOps>& due) {
  OrderedMap<bool> left = returned;
  for (const auto& split : due) {
    for (const auto* names : {&split.train, &split.log, &split.eval}) {
      for (const auto& name : *names) left.erase(name);
    }
  }
  return left.empty() ? "" : left.key_list();
}

void note_names(const StepOps& ops, OrderedMap<bool>& trained, OrderedMap<bool>& names) {
  for (const auto& [name, op] : ops.train_ops) trained.set(name, true);
  for (const auto& [name, op] : ops.log_ops) names.set(name, true);
  for (const auto& [name, op] : ops.eval_ops) names.set(name, true);
}

std::string memory_text(const Context& context, const TensorMemory& memory, bool trains) {
  int64_t weights = 0;
  for (const auto& name : context.networks.names()) {
    weights += bytes_of(context.networks.tensors(name));
  }
  int64_t optimizers = 0;  // of this process; made on first use, so never in an evaluation
  for (const auto& [name, update] : context.updates) {
    if (trains) optimizers += bytes_of(update->state());
  }
  const auto size = [](auto bytes) { return size_text(static_cast<double>(bytes)); };
  return fmt::format(
      "memory    networks {}, state of optimizers {}{}; at most {} of tensors at once on the {}, "
      "and "
      "{} of this process in all",
      size(weights), size(optimizers),
      context.world.is_alone() ? ""
                               : fmt::format(" in the first of {} processes", context.world.size()),
      size(memory.most(context.device.type())), context.device.is_cpu() ? "CPU" : "GPU",
      size(process_bytes()));
}

/// Shows the receptive fields of convolutional networks and, on request, all networks' operations.
void show_networks(const Context& context, const NetworkCalls& calls, Console& console,
                   bool shows_graphs) {
  for (const auto& [network, graph, problem] : network_graphs(context, calls)) {
    if (graph) {
      if (const auto field = receptive_field(*graph)) {
        console.info(fmt::format("field     {}: {}", network, receptive_field_text(*field)));
      }
      if (shows_graphs) {
        console.info(fmt::format("graph     {}\n{}", network, indented(graph_table(*graph))));
      }
    } else if (shows_graphs) {
      console.warn(fmt::format("no graph of the network {}: {}", network, problem));
    }
  }
}

/// Modules that run again in the backward pass or in float32.
void show_modules(const Networks& networks, Console& console) {
  const CheckpointModules& checkpointed = networks.checkpoint_modules();
  if (const auto names = checkpointed.ran(); !names.empty()) {
    console.info(fmt::format("run again in the backward pass: {}: {}",
                             counted(names.size(), "module"), list_text(names)));
  }
  for (const std::string& text : {checkpointed.warning(), networks.float32_modules().warning()}) {
    if (!text.empty()) console.warn(text);
  }
}

/// Hooks and callbacks, which a dry run leaves out.
void show_what_is_not_run(const Session& session, Console& console) {
  std::string hooks;
  for (const auto& hook : session.hooks()) {
    hooks += fmt::format(", {} ({})", hook.name, hook.class_name);
  }
  if (!hooks.empty()) {
    console.info(
        fmt::format("hooks     not run, but for initialize; in this order: iterator{}", hooks));
  }
  const auto has_callbacks = [&](const EvaluationSettings& evaluation) {
    const Value* callbacks = session.config().peek(evaluation.place + "/eval_callbacks");
    return callbacks != nullptr && !callbacks->is_null();
  };
  if (std::ranges::any_of(session.settings().evaluations, has_callbacks)) {
    console.info("callbacks not run: they need a whole evaluation, and -d makes a short one");
  }
}

}  // namespace

void try_everything(Session& session, TensorMemory& memory, Console& console, bool shows_graphs) {
  const Context& context = session.context();
  const Settings& settings = session.settings();
  console.info(fmt::format("device    {}", describe_device(context.device)));
  console.info(fmt::format("seed      {}\n", context.seed));
  console.info(module_table(context.networks));
  const std::vector<DueOps> splits = due_ops(settings, session.trains());
  const NetworkCalls calls(context.networks);
  if (session.trains()) {
    context.networks.start_averages();
    session.freezing().begin_step(session.position().global_step);
  }
  OrderedMap<bool> trained;
  OrderedMap<bool> returned;
  for (const auto& due : splits) {
    if (due.is_in_training()) {
      SplitDryRun dry_run(session, memory, due, context.splits.order(due.split));
      dry_run.train(console);
      console.info(fmt::format("{} on {}: {}", due.train.empty() ? "logs" : "training", due.split,
                               dry_run.text()));
      note_names(dry_run.ops(), trained, returned);
    }
    if (!due.eval.empty()) {
      const auto first = std::ranges::find_if(settings.evaluations, [&](const auto& evaluation) {
        return evaluation.op.split == due.split;
      });
      SplitDryRun dry_run(session, memory, due,
                          context.splits.evaluation_order(due.split, first->max_batches));
      dry_run.evaluate();
      console.info(fmt::format("evaluation on {}: {}", due.split, dry_run.text()));
      note_names(dry_run.ops(), trained, returned);
    }
  }
  // A missing train op is a mistake; other ops may be for a config that is merged over this one.
  const std::string untrained = never_called(trained, splits);
  if (session.trains() && !untrained.empty()) {
    console.warn(fmt::format("train_ops leaves out what step_op returns: {}", untrained));
  }
  const std::string unused = never_called(returned, splits);
  if (!unused.empty()) {
    console.info(
        fmt::format("not run   {}: step_op returns it, the config calls it nowhere", unused));
  }
  console.info(memory_text(context, memory, session.trains()));
  show_modules(context.networks, console);
  show_networks(context, calls, console, shows_graphs);
  show_what_is_not_run(session, console);
  console.info("all ops that the config calls were run: ok");
}

}  // namespace stepop
