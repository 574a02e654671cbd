#include "runtime/train/loop/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/base/error.h"
#include "runtime/core/config/references.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/measure/profile.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/loader.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/eval_message.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/random_fork.h"

namespace stepop {
namespace {

/// The mean of every label over all examples: each example counts once, or by its weight, whatever
/// its batch's size; an example with several numbers counts with their mean. Sums are float64. A
/// label of which nothing counts has no mean.
void mean_labels(const EvalFile& file, const std::string& prefix, OrderedMap<double>& scalars) {
  for (const auto& array : file.arrays()) {
    constexpr std::string_view kGroup = "labels/";
    if (!array.key.starts_with(kGroup) || array.kind != EvalKind::kTensor) continue;
    const int64_t block = file.rows_per_block(array.key);
    const std::string name = array.key.substr(kGroup.size());
    const std::string weights = kWeights + name;
    const bool has_weights = file.contains(weights);
    double sum = 0;
    double count = 0;
    for (int64_t first = 0; first < file.rows(); first += block) {
      const at::Tensor values = file.read(array.key, first, std::min(block, file.rows() - first));
      if (values.is_complex()) break;
      if (has_weights) {
        const at::Tensor weight = file.read(weights, first, values.size(0)).to(at::kDouble);
        // What does not count may be NaN.
        const at::Tensor counted = values.to(at::kDouble).mul(weight).masked_fill(weight.eq(0), 0);
        sum += counted.sum().item<double>();
        count += weight.sum().item<double>();
        continue;
      }
      sum += values.sum(at::kDouble).item<double>();
      count += static_cast<double>(values.numel());
    }
    if (count == 0) continue;
    scalars.set(fmt::format("{}/{}", prefix, name), sum / count);
  }
}

/// The name of an array of the file for h5py: the first output, with `values` for a ragged output;
/// a label, or the index, when there is no output.
std::string first_array(const EvalFile& file, const std::string& first_output) {
  std::string key = first_output;
  if (!file.contains(key) && !file.keys().empty()) key = file.keys().back();
  if (!file.contains(key)) return "index";
  return file.array(key).kind == EvalKind::kRagged ? key + "/values" : key;
}

/// Renames unreadable files that a killed process left of an evaluation, so that it starts again.
void set_aside_damaged(EvaluationResult& result, const InterruptCheck& interrupt) {
  for (const std::string& path : {result.outputs, result.outputs + ".part"}) {
    const OpenFile opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    // A file that cannot be opened may be whole, and a file that another process holds is not ours.
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
      result.warning +=
          fmt::format("{}{}; this evaluation starts again, and the file is {} until it is over",
                      result.warning.empty() ? "" : "\n", error.what(), aside);
    }
  }
}

/// The names of callbacks that failed; their errors are in the log of the process that ran them.
std::string failures_text(const EvaluationResult& result) {
  std::string text;
  for (const auto& [name, message] : result.failures) text += name + "\n";
  return text;
}

void take_failures(const std::string& text, EvaluationResult& result) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    result.failures.set(text.substr(at, end - at), "");
    at = end + 1;
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
  const char* const who = context.config.has("iterator") ? "iterator" : "eval_functor";
  attributes_.set("iterator", read_component(context.config, who).name);
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

/// The number of rows in a file of this evaluation; nothing when there is no such file.
std::optional<int64_t> Evaluation::rows_in(const std::string& path,
                                           const OrderedMap<Attribute>& attributes) const {
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    const EvalFile file(path, {}, EvalOrigin::kLeftBehind);
    // A file from another config may hold fewer examples.
    return file.is_of(attributes, total()) ? std::optional(file.rows()) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Runs a batch of the split through the eval op.
EvalOutputs Evaluation::outputs_of(const Batch& batch, int64_t number, Position& position) const {
  const std::string& op_name = settings_.op.op;
  seed_generators(
      mix_seed({context_.seed, seed_of(split_), static_cast<uint64_t>(position.global_step),
                static_cast<uint64_t>(number)}),
      context_.device);
  const StepOps ops = run_on(context_, split_, batch, [&] {
    return call_step_op(iterator_, context_, position, split_, false, batch);
  });
  const EvalOp* op = ops.find_eval_op(op_name);
  if (op == nullptr) throw missing_op(context_, split_, op_name, ops);
  const Span span(context_.profile.get(), {split_, "/", op_name});
  return run_on(context_, split_, batch, [&] { return run_op(context_, split_, op_name, *op); });
}

/// Ends an evaluation in all processes when one process was asked to end.
void Evaluation::interrupt_all(const InterruptCheck& interrupt) const {
  World& world = context_.world;
  std::optional<Interrupted> own;
  try {
    if (interrupt) interrupt();
  } catch (const Interrupted& asked) {
    if (world.is_alone()) throw;
    own = asked;
  }
  if (world.is_alone()) return;
  const std::vector<double> asked =
      world.max({own ? 1.0 : 0.0, own ? static_cast<double>(own->exit_code()) : 0.0});
  if (asked[0] == 0) return;
  throw own ? *own : Interrupted("another process was asked to end", static_cast<int>(asked[1]));
}

void Evaluation::begin_outputs(const std::string& path, const OrderedMap<Attribute>& attributes,
                               std::optional<EvalWriter>& writer) const {
  const Dataset& dataset = context_.splits.dataset(split_);
  writer.emplace(path, total(), attributes,
                 EvalWriterOptions{.compression = settings_.compression,
                                   .resume = true,
                                   .class_names = all_class_names(context_.config),
                                   .dataset_size = context_.splits.examples(split_),
                                   .source_rows = dataset.source_rows()});
}

/// This process's batches from `first` on.
std::unique_ptr<Loader> Evaluation::own_batches(int64_t first,
                                                const InterruptCheck& interrupt) const {
  const World& world = context_.world;
  const int64_t end = order().batches_per_epoch();
  LoaderOptions options = context_.splits.loader_options();
  options.profile = context_.profile;
  std::shared_ptr<BatchSource> source = context_.splits.source(split_, order(), {.batch = first});
  if (world.is_alone()) {
    options.interrupt = interrupt;
    options.first_batch = first;
    options.end_batch = end;
  } else {
    source = std::make_shared<EveryNthBatch>(source, first, world.rank(), world.size());
    options.end_batch = (end - first - world.rank() + world.size() - 1) / world.size();
  }
  return std::make_unique<Loader>(std::move(source), options);
}

/// Runs the split through the eval op and writes the outputs. Several processes take turns, one
/// batch each, and rank 0 writes the outputs in the order of the dataset.
void Evaluation::write_outputs(Position& position, const OrderedMap<Attribute>& attributes,
                               const EvaluationProgress& progress, const InterruptCheck& interrupt,
                               EvaluationResult& result) const {
  World& world = context_.world;
  Profile* const profile = context_.profile.get();
  std::optional<EvalWriter> writer;
  // A process that was stopped in this evaluation may have left the first rows.
  int64_t done = std::stoll(world.from_root([&] {
    const Span span(profile, "write");
    begin_outputs(result.outputs, attributes, writer);
    return std::to_string(writer->rows());
  }));
  const int64_t first = (done + order().batch_size() - 1) / order().batch_size();
  const int64_t end = order().batches_per_epoch();
  const std::unique_ptr<Loader> loader = own_batches(first, interrupt);
  const RandomFork fork(context_.seed, context_.device);
  const AveragesGuard weights = context_.networks.evaluation_weights();
  for (int64_t round = first; round < end; round += world.size()) {
    interrupt_all(interrupt);
    std::optional<Batch> batch;
    EvalMessage found;
    if (const int64_t number = round + world.rank(); number < end) {
      {
        const Span span(profile, {"waiting for ", split_, " data"});
        batch = loader->next();
      }
      found.outputs = outputs_of(*batch, number, position);
      found.indices = batch->indices();
    }
    const auto write = [&](const EvalMessage& message) {
      const Span span(profile, "write");
      const EvalOutputs& outputs = message.outputs;
      writer->write(outputs, message.indices);
      if (!outputs.outputs.empty()) {
        result.first_output = "outputs/" + outputs.outputs.begin()->first;
      } else if (!outputs.labels.empty()) {
        result.first_output = "labels/" + outputs.labels.begin()->first;
      }
      progress(done += static_cast<int64_t>(message.indices.size()), total());
    };
    if (writer) write(found);
    if (world.is_alone()) continue;
    const auto all = world.gather_bytes_at_root(world.is_root() || !batch ? "" : to_bytes(found));
    for (const std::string& other : all) {
      if (!other.empty()) write(eval_message_from_bytes(other));
    }
  }
  const Span span(profile, "write");
  world.wait_for_root([&] { writer->finish(); });
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
  EvaluationResult result;
  result.name = settings_.name;
  result.folder = folder;
  result.outputs = folder + "/outputs.h5";
  const SplitGuard guard(position, split_);
  const at::NoGradGuard no_grad;
  const OrderedMap<Attribute> about = attributes(position, checkpoint);
  World& world = context_.world;
  const std::string is_to_write = world.from_root([&] {
    make_folders(folder);
    // If a process was killed in a callback, the whole file is there. A finished evaluation may
    // have used other weights.
    const bool is_over = std::filesystem::exists(scalars_file(folder));
    if (!is_over) set_aside_damaged(result, interrupt);
    return is_over || !rows_in(result.outputs, about) ? "1" : "0";
  });
  if (is_to_write == "1") write_outputs(position, about, progress, interrupt, result);
  const std::string found = world.from_root([&] {
    finish(position.global_step, interrupt, result);
    return world.is_alone() ? std::string()
                            : to_json(result.scalars) + "\n" + failures_text(result);
  });
  if (world.is_root()) return result;
  const size_t line = found.find('\n');
  result.scalars = scalars_from_json(found.substr(0, line));
  take_failures(found.substr(line + 1), result);
  return result;
}

/// Runs the callbacks and writes the numbers, after all rows are there. One process does this.
void Evaluation::finish(int64_t step, const InterruptCheck& interrupt,
                        EvaluationResult& result) const {
  look_at_outputs(step, interrupt, result);
  const Span span(context_.profile.get(), "write");
  // Outputs that a failed callback could not look at are worth keeping. Others are a .part before
  // the numbers are there: a process that is killed between the two leaves nothing that looks
  // whole.
  const bool cleans = settings_.clean_after_callbacks && result.failures.empty();
  const std::string part = result.outputs + ".part";
  std::error_code failed;
  if (cleans) std::filesystem::rename(result.outputs, part, failed);
  write_file_atomically(scalars_file(result.folder), to_json(result.scalars) + "\n");
  if (cleans && !failed) std::filesystem::remove(part, failed);
  if (failed) {
    result.warning +=
        fmt::format("{}clean_after_callbacks: cannot remove {}: {}",
                    result.warning.empty() ? "" : "\n", result.outputs, failed.message());
    std::error_code ignored;
    std::filesystem::rename(part, result.outputs, ignored);
  } else if (cleans) {
    result.outputs.clear();
  }
  remove_remains(result.folder);
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

void remove_remains(const std::string& folder) {
  for (const char* name : {"outputs.h5.part", "outputs.h5.part.damaged", "outputs.h5.damaged"}) {
    std::error_code ignored;
    std::filesystem::remove(std::filesystem::path(folder) / name, ignored);
  }
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
