#include "runtime/loop/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/config/json_writer.h"
#include "runtime/config/resolve.h"
#include "runtime/config/yaml_writer.h"
#include "runtime/log/metrics_file.h"
#include "runtime/measure/profile.h"
#include "runtime/run/provenance.h"
#include "runtime/run/run_directory.h"
#include "runtime/step/random_fork.h"
#include "runtime/step/split_step.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace {

/// The mean of every label over all examples: each counts once, whatever its batch's size; one with
/// several numbers counts with their mean. Sums are float64.
void mean_labels(const EvalFile& file, const std::string& prefix, OrderedMap<double>& scalars) {
  for (const auto& array : file.arrays()) {
    constexpr std::string_view kGroup = "labels/";
    if (!array.key.starts_with(kGroup) || array.kind != EvalKind::kTensor) continue;
    const int64_t block = file.rows_per_block(array.key);
    double sum = 0;
    int64_t count = 0;
    for (int64_t first = 0; first < file.rows(); first += block) {
      const at::Tensor values = file.read(array.key, first, std::min(block, file.rows() - first));
      if (values.is_complex()) break;
      sum += values.sum(at::kDouble).item<double>();
      count += values.numel();
    }
    if (count == 0) continue;
    scalars.set(fmt::format("{}/{}", prefix, array.key.substr(kGroup.size())),
                sum / static_cast<double>(count));
  }
}

OrderedMap<Attribute> attributes(const Context& context, const Position& position,
                                 const std::string& split, const std::string& git,
                                 const std::string& checkpoint) {
  OrderedMap<Attribute> attributes;
  attributes.set("global_step", position.global_step);
  attributes.set("split", split);
  attributes.set("iterator", read_component(context.config, "iterator").name);
  std::string models;
  for (const auto& text : context.networks.class_names()) {
    models += (models.empty() ? "" : ", ") + text;
  }
  attributes.set("model", models);
  const Value& config = *context.config.root().peek();
  attributes.set("config", to_yaml(escape_references(config)));
  attributes.set("config_json", to_json(config));
  attributes.set("git", git);
  attributes.set("program", program_time());
  if (!checkpoint.empty()) attributes.set("checkpoint", checkpoint);
  return attributes;
}

const BatchOrder& order_of(const Settings& settings, const Context& context) {
  return context.splits.evaluation_order(settings.eval_op.split, settings.max_eval_batches);
}

int64_t rows_of(const BatchOrder& order) { return order.examples_in(order.batches_per_epoch()); }

/// How many rows a file of this evaluation holds; nothing when there is none, or it is another's.
std::optional<int64_t> rows_in(const std::string& path, int64_t total,
                               const OrderedMap<Attribute>& attributes) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    const EvalFile file(path);
    for (const auto& [name, value] : attributes) {
      const Attribute* stored = file.attributes().find(name);
      if (stored == nullptr || *stored != value) return std::nullopt;
    }
    // One that another config made may hold fewer examples.
    return file.index_length() == total ? std::optional(file.rows()) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Runs the split through the eval op and writes what it returns; the labels' means go to `result`.
void write_outputs(const Settings& settings, Iterator& iterator, const Context& context,
                   Position& position, const OrderedMap<Attribute>& attributes,
                   const EvaluationProgress& progress, const InterruptCheck& interrupt,
                   EvaluationResult& result) {
  const std::string& split = settings.eval_op.split;
  const BatchOrder& order = order_of(settings, context);
  const int64_t total = rows_of(order);
  Profile* const profile = context.profile.get();
  // A process that was stopped in this evaluation left the first rows.
  EvalWriter writer = [&] {
    const Span span(profile, "write");
    return EvalWriter(result.outputs, total, attributes,
                      {.compression = settings.compression, .go_on = true});
  }();
  int64_t done = writer.rows();
  LoaderOptions options = context.splits.loader_options();
  options.profile = context.profile;
  options.interrupt = interrupt;
  options.first_batch = (done + order.batch_size() - 1) / order.batch_size();
  options.end_batch = order.batches_per_epoch();
  Loader loader(context.splits.dataset(split), order, options);
  const RandomFork fork(context.seed, context.device);
  const EmaGuard weights = context.networks.evaluation_weights();
  while (loader.has_next()) {
    if (interrupt) interrupt();
    seed_generators(
        mix_seed({context.seed, seed_of(split), static_cast<uint64_t>(position.global_step),
                  static_cast<uint64_t>(loader.position())}),
        context.device);
    const Batch batch = [&] {
      const Span span(profile, {"waiting for ", split, " data"});
      return loader.next();
    }();
    const StepOps ops = run_on(context, split, batch, [&] {
      return call_step_op(iterator, context, position, split, false, batch);
    });
    const EvalOp* op = ops.find_eval_op(settings.eval_op.op);
    if (op == nullptr) throw missing_op(context, split, settings.eval_op.op, ops);
    const EvalOutputs outputs = [&] {
      const Span span(profile, {split, "/", settings.eval_op.op});
      return run_on(context, split, batch,
                    [&] { return run_op(context, split, settings.eval_op.op, *op); });
    }();
    const Span span(profile, "write");
    writer.write(outputs, batch.indices());
    if (!outputs.outputs.empty()) {
      result.first_output = "outputs/" + outputs.outputs.begin()->first;
    } else if (!outputs.labels.empty()) {
      result.first_output = "labels/" + outputs.labels.begin()->first;
    }
    progress(done += batch.size(), total);
  }
  const Span span(profile, "write");
  writer.finish();
}

/// Runs the callbacks over the finished file.
void add_callbacks(const Settings& settings, const Context& context, int64_t step,
                   const InterruptCheck& interrupt, EvaluationResult& result) {
  const Span span(context.profile.get(), "callbacks");
  const EvalFile file(result.outputs, interrupt);
  mean_labels(file, settings.eval_op.text(), result.scalars);
  if (result.first_output.empty() && !file.keys().empty()) result.first_output = file.keys().back();
  CallbackScalars found =
      look_at_outputs(context.config, settings.eval_op.text(), step, result.folder,
                      context.splits.dataset(settings.eval_op.split), file);
  for (const auto& [name, value] : found.scalars) result.scalars.set(name, value);
  result.failures = std::move(found.failures);
}

}  // namespace

EvaluationResult evaluate(const Settings& settings, Iterator& iterator, const Context& context,
                          Position& position, const std::string& folder, const std::string& git,
                          const EvaluationProgress& progress, const InterruptCheck& interrupt,
                          const std::string& checkpoint) {
  make_folders(folder);
  EvaluationResult result;
  result.folder = folder;
  result.outputs = folder + "/outputs.h5";
  const SplitGuard guard(position, settings.eval_op.split);
  const at::NoGradGuard no_grad;
  const auto about = attributes(context, position, settings.eval_op.split, git, checkpoint);
  // A process that was killed in a callback left the whole file; one that came to its end may have
  // been of other weights.
  const bool is_over = std::filesystem::exists(scalars_file(folder));
  if (is_over || !rows_in(result.outputs, rows_of(order_of(settings, context)), about)) {
    write_outputs(settings, iterator, context, position, about, progress, interrupt, result);
  }
  add_callbacks(settings, context, position.global_step, interrupt, result);
  const Span span(context.profile.get(), "write");
  write_file_atomically(scalars_file(folder), to_json(result.scalars) + "\n");
  // Outputs that a failed callback could not look at are worth keeping.
  if (settings.clean_after_callbacks && result.failures.empty()) {
    std::error_code failed;
    std::filesystem::remove(result.outputs, failed);
    if (failed) {
      result.warning = fmt::format("clean_after_callbacks: cannot remove {}: {}", result.outputs,
                                   failed.message());
    } else {
      result.outputs.clear();
    }
  }
  return result;
}

std::optional<EvaluationRows> rows_left_behind(const Settings& settings, const Context& context,
                                               const Position& position, const std::string& folder,
                                               const std::string& git,
                                               const std::string& checkpoint) {
  const auto about = attributes(context, position, settings.eval_op.split, git, checkpoint);
  const int64_t total = rows_of(order_of(settings, context));
  const std::string outputs = folder + "/outputs.h5";
  if (const auto done = rows_in(outputs, total, about)) return EvaluationRows{*done, total};
  const auto done = rows_in(outputs + ".part", total, about);
  // Without rows there is nothing to go on with.
  return done && *done > 0 ? std::optional(EvaluationRows{*done, total}) : std::nullopt;
}

std::optional<OrderedMap<double>> scalars_of_evaluation(const std::string& folder) {
  const std::string path = scalars_file(folder);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_scalars_file(path);
}

void add_scalars_of_evaluation(const std::string& folder, const OrderedMap<double>& scalars) {
  auto all = scalars_of_evaluation(folder);
  if (!all) return;
  for (const auto& [name, value] : scalars) all->set(name, value);
  write_file_atomically(scalars_file(folder), to_json(*all) + "\n");
}

}  // namespace stepop
