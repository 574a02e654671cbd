#include "runtime/loop/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/base/error.h"
#include "runtime/config/references.h"
#include "runtime/config/yaml_writer.h"
#include "runtime/data/loader.h"
#include "runtime/log/metrics_file.h"
#include "runtime/measure/profile.h"
#include "runtime/run/provenance.h"
#include "runtime/run/run_directory.h"
#include "runtime/step/call_op.h"
#include "runtime/step/random_fork.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/file_calls.h"
#include "runtime/system/file_lock.h"
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

/// An array of the file that h5py opens by its name: that of the first output, `values` of a ragged
/// one; a label, or the index, when there is no output.
std::string first_array(const EvalFile& file, const std::string& first_output) {
  std::string key = first_output;
  if (!file.contains(key) && !file.keys().empty()) key = file.keys().back();
  if (!file.contains(key)) return "index";
  return file.array(key).kind == EvalKind::kRagged ? key + "/values" : key;
}

/// Renames what a process left of an evaluation and that cannot be read, so that it is made again.
void set_aside_damaged(EvaluationResult& result, const InterruptCheck& interrupt) {
  for (const std::string& path : {result.outputs, result.outputs + ".part"}) {
    const OpenFile opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    // What cannot be opened may be whole; what another process holds is not ours.
    if (!opened || try_lock(opened, /*is_shared=*/true) == Locked::kHeld) continue;
    try {
      const EvalFile file(path, interrupt, EvalOrigin::kLeftBehind);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      const std::string aside = path + ".damaged";
      std::error_code failed;
      std::filesystem::rename(path, aside, failed);
      if (failed) continue;
      result.warning += fmt::format("{}{}; it is now {}, and this evaluation starts again",
                                    result.warning.empty() ? "" : "\n", error.what(), aside);
    }
  }
}

}  // namespace

Evaluation::Evaluation(const EvaluationSettings& settings, Iterator& iterator,
                       const Context& context, std::string git)
    : settings_(settings),
      iterator_(iterator),
      context_(context),
      split_(settings.op.split),
      callbacks_(context.config, settings.place + "/eval_callbacks") {
  attributes_.set("global_step", int64_t{0});
  attributes_.set("split", split_);
  if (!settings.name.empty()) attributes_.set("evaluation", settings.name);
  attributes_.set("iterator", read_component(context.config, "iterator").name);
  std::string models;
  for (const auto& text : context.networks.class_names()) {
    models += (models.empty() ? "" : ", ") + text;
  }
  attributes_.set("model", models);
  const Value config = config_of_evaluation(*context.config.root().peek(), settings.name);
  attributes_.set("config", to_yaml(escape_references(config)));
  attributes_.set("config_json", to_json(config));
  attributes_.set("git", std::move(git));
  attributes_.set("program", program_time());
}

OrderedMap<Attribute> Evaluation::attributes(const Position& position,
                                             const std::string& checkpoint) const {
  OrderedMap<Attribute> attributes = attributes_;
  attributes.set("global_step", position.global_step);
  if (!checkpoint.empty()) attributes.set("checkpoint", checkpoint);
  return attributes;
}

const BatchOrder& Evaluation::order() const {
  return context_.splits.evaluation_order(split_, settings_.max_batches);
}

int64_t Evaluation::total() const { return order().examples_in(order().batches_per_epoch()); }

/// How many rows a file of this evaluation holds; nothing when there is none, or it is another's.
std::optional<int64_t> Evaluation::rows_in(const std::string& path,
                                           const OrderedMap<Attribute>& attributes) const {
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    const EvalFile file(path, {}, EvalOrigin::kLeftBehind);
    // One that another config made may hold fewer examples.
    return file.is_of(attributes, total()) ? std::optional(file.rows()) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Runs the split through the eval op and writes what it returns.
void Evaluation::write_outputs(Position& position, const OrderedMap<Attribute>& attributes,
                               const EvaluationProgress& progress, const InterruptCheck& interrupt,
                               EvaluationResult& result) const {
  const std::string& op_name = settings_.op.op;
  Profile* const profile = context_.profile.get();
  // A process that was stopped in this evaluation left the first rows.
  EvalWriter writer = [&] {
    const Span span(profile, "write");
    return EvalWriter(result.outputs, total(), attributes,
                      {.compression = settings_.compression, .resume = true});
  }();
  int64_t done = writer.rows();
  LoaderOptions options = context_.splits.loader_options();
  options.profile = context_.profile;
  options.interrupt = interrupt;
  options.first_batch = (done + order().batch_size() - 1) / order().batch_size();
  options.end_batch = order().batches_per_epoch();
  Loader loader(context_.splits.source(split_, order(), {.batch = options.first_batch}), options);
  const RandomFork fork(context_.seed, context_.device);
  const AveragesGuard weights = context_.networks.evaluation_weights();
  while (loader.has_next()) {
    if (interrupt) interrupt();
    seed_generators(
        mix_seed({context_.seed, seed_of(split_), static_cast<uint64_t>(position.global_step),
                  static_cast<uint64_t>(loader.position())}),
        context_.device);
    const Batch batch = [&] {
      const Span span(profile, {"waiting for ", split_, " data"});
      return loader.next();
    }();
    const StepOps ops = run_on(context_, split_, batch, [&] {
      return call_step_op(iterator_, context_, position, split_, false, batch);
    });
    const EvalOp* op = ops.find_eval_op(op_name);
    if (op == nullptr) throw missing_op(context_, split_, op_name, ops);
    const EvalOutputs outputs = [&] {
      const Span span(profile, {split_, "/", op_name});
      return run_on(context_, split_, batch,
                    [&] { return run_op(context_, split_, op_name, *op); });
    }();
    const Span span(profile, "write");
    writer.write(outputs, batch.indices());
    if (!outputs.outputs.empty()) {
      result.first_output = "outputs/" + outputs.outputs.begin()->first;
    } else if (!outputs.labels.empty()) {
      result.first_output = "labels/" + outputs.labels.begin()->first;
    }
    progress(done += batch.size(), total());
  }
  const Span span(profile, "write");
  writer.finish();
}

/// The means of the labels and the callbacks over the finished file.
void Evaluation::look_at_outputs(int64_t step, const InterruptCheck& interrupt,
                                 EvaluationResult& result) const {
  const Span span(context_.profile.get(), "callbacks");
  const EvalFile file(result.outputs, interrupt, EvalOrigin::kOwn);
  mean_labels(file, settings_.prefix(), result.scalars);
  result.first_output = first_array(file, result.first_output);
  CallbackScalars found = callbacks_.run(settings_.prefix(), step, result.folder,
                                         context_.splits.dataset(split_), file);
  for (const auto& [name, value] : found.scalars) result.scalars.set(name, value);
  result.failures = std::move(found.failures);
}

EvaluationResult Evaluation::run(Position& position, const std::string& folder,
                                 const EvaluationProgress& progress,
                                 const InterruptCheck& interrupt,
                                 const std::string& checkpoint) const {
  make_folders(folder);
  EvaluationResult result;
  result.name = settings_.name;
  result.folder = folder;
  result.outputs = folder + "/outputs.h5";
  const SplitGuard guard(position, split_);
  const at::NoGradGuard no_grad;
  const OrderedMap<Attribute> about = attributes(position, checkpoint);
  // A process that was killed in a callback left the whole file; one that came to its end may have
  // been of other weights.
  const bool is_over = std::filesystem::exists(scalars_file(folder));
  if (!is_over) set_aside_damaged(result, interrupt);
  if (is_over || !rows_in(result.outputs, about)) {
    write_outputs(position, about, progress, interrupt, result);
  }
  look_at_outputs(position.global_step, interrupt, result);
  const Span span(context_.profile.get(), "write");
  write_file_atomically(scalars_file(folder), to_json(result.scalars) + "\n");
  // Outputs that a failed callback could not look at are worth keeping.
  if (settings_.clean_after_callbacks && result.failures.empty()) {
    std::error_code failed;
    std::filesystem::remove(result.outputs, failed);
    if (failed) {
      result.warning +=
          fmt::format("{}clean_after_callbacks: cannot remove {}: {}",
                      result.warning.empty() ? "" : "\n", result.outputs, failed.message());
    } else {
      result.outputs.clear();
    }
  }
  return result;
}

std::optional<EvaluationRows> Evaluation::rows_left_behind(const Position& position,
                                                           const std::string& folder,
                                                           const std::string& checkpoint) const {
  const OrderedMap<Attribute> about = attributes(position, checkpoint);
  const std::string outputs = folder + "/outputs.h5";
  if (const auto done = rows_in(outputs, about)) return EvaluationRows{*done, total()};
  const auto done = rows_in(outputs + ".part", about);
  // Without rows there is nothing to resume.
  return done && *done > 0 ? std::optional(EvaluationRows{*done, total()}) : std::nullopt;
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
