#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "eval_out/hdf5/hdf5_values.h"
#include "eval_out/read/eval_statistics.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/formats/safetensors_reader.h"
#include "runtime/core/formats/weights_file.h"
#include "runtime/tools/cli/command.h"
#include "runtime/train/checkpoint/checkpoint.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

/// Integers exactly, other numbers with four digits.
std::string number_text(const std::optional<double>& number) {
  if (!number) return kNoValue;
  const bool is_whole = *number == std::floor(*number) && std::abs(*number) < 1e15;
  return is_whole ? fmt::format("{:.0f}", *number + 0.0) : short_number(*number);  // no -0
}

std::string count_text(int64_t count) { return count == 0 ? kNoValue : with_thousands(count); }

std::vector<std::string> number_cells(const TensorStatistics& numbers) {
  return {number_text(numbers.min()), number_text(numbers.max()),
          numbers.mean() ? short_number(*numbers.mean()) : kNoValue, count_text(numbers.nans()),
          count_text(numbers.infinities())};
}

std::vector<TextTable::Column> columns(const std::string& first) {
  return {{first},       {"type"},       {"shape"},     {"size", true}, {"min", true},
          {"max", true}, {"mean", true}, {"NaN", true}, {"inf", true},  {""}};
}

void add_row(TextTable& table, std::vector<std::string> cells, const TensorStatistics& numbers,
             std::string note) {
  for (auto& cell : number_cells(numbers)) cells.push_back(std::move(cell));
  cells.push_back(std::move(note));
  table.add(std::move(cells));
}

std::string written_text(const std::string& path) {
  const std::string age = age_text(path);
  return age.empty() ? "" : ", written " + age;
}

std::string file_size_text(const std::string& path) {
  std::error_code failed;
  const uintmax_t bytes = fs::file_size(path, failed);
  return failed ? "?" : size_text(static_cast<double>(bytes));
}

/// `[355, 2 to 9, 4]`: a ragged array's lengths are in place of its second dimension.
std::string array_shape(const EvalArray& array, const EvalStatistics& statistics, int64_t rows) {
  std::string text = fmt::format("[{}", rows);
  if (array.kind == EvalKind::kRagged && statistics.shortest) {
    text += *statistics.shortest == *statistics.longest
                ? fmt::format(", {}", *statistics.shortest)
                : fmt::format(", {} to {}", *statistics.shortest, *statistics.longest);
  }
  for (const int64_t length : array.shape) text += fmt::format(", {}", length);
  return text + "]";
}

std::string note_of(const EvalArray& array, const EvalStatistics& statistics) {
  if (statistics.rows_without_weight > 0) {
    return counted(statistics.rows_without_weight, "row") + " of weight 0 left out";
  }
  if (array.kind == EvalKind::kTensor || !statistics.shortest) return "";
  if (array.kind == EvalKind::kRagged) {
    return fmt::format("ragged, mean length {}", short_number(statistics.mean_length));
  }
  return fmt::format("{} to {} bytes, mean {}", *statistics.shortest, *statistics.longest,
                     short_number(statistics.mean_length));
}

std::string attribute_text(const std::string& name, const Attribute& value) {
  if (const auto* is_true = std::get_if<bool>(&value)) return *is_true ? "true" : "false";
  if (const auto* count = std::get_if<int64_t>(&value)) return with_thousands(*count);
  if (const auto* number = std::get_if<double>(&value)) return short_number(*number);
  const auto& text = std::get<std::string>(value);
  if (name == "config_json") return size_text(static_cast<double>(text.size())) + " of JSON";
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (lines == 0) return text;
  return fmt::format("{}{}", counted(lines, "line"), name == "config" ? " of YAML" : "");
}

/// Prints the file's description of itself, with the usual attributes first.
void print_source(const EvalFile& file) {
  fmt::print("{}: outputs of an evaluation, {}, {}, {}{}\n", file.path(),
             file.complete() ? "complete" : "NOT complete: it was stopped, or is being written",
             counted(file.rows(), "row"), file_size_text(file.path()), written_text(file.path()));
  std::vector<std::string> names = {"global_step", "split", "iterator", "model", "git", "config"};
  for (const auto& [name, value] : file.attributes()) {
    const bool is_listed = name == "rows" || name == "complete" ||
                           std::find(names.begin(), names.end(), name) != names.end();
    if (!is_listed) names.push_back(name);
  }
  for (const auto& name : names) {
    const Attribute* value = file.attributes().find(name);
    if (value != nullptr) fmt::print("  {:<15} {}\n", name, attribute_text(name, *value));
  }
}

void inspect_outputs(const std::string& path) {
  const EvalFile file(path);
  print_source(file);
  TextTable table(columns("key"));
  TensorStatistics index;
  index.add(file.index());
  const int64_t rows = file.rows();
  add_row(table,
          {"index", "int64", fmt::format("[{}]", rows), size_text(static_cast<double>(rows * 8))},
          index, "");
  for (const EvalArray& array : file.arrays()) {
    const EvalStatistics statistics = statistics_of(file, array.key);
    add_row(table,
            {array.key, array.kind == EvalKind::kText ? "text" : type_name(array.dtype),
             array_shape(array, statistics, rows),
             size_text(static_cast<double>(statistics.stored_bytes))},
            statistics.numbers, note_of(array, statistics));
  }
  fmt::print("\n{}", table.text());
}

std::string checkpoint_text(const std::string& path) {
  try {
    const Progress progress = read_checkpoint_header(path).progress;
    return fmt::format("checkpoint of step {}, epoch {}, {} seen",
                       with_thousands(progress.global_step), progress.epoch,
                       counted(progress.samples_seen, "example"));
  } catch (const Error&) {
    return "tensors of another program";
  }
}

void inspect_tensors(const std::string& path) {
  TextTable table(columns("tensor"));
  int64_t numbers = 0;
  size_t tensors = 0;
  bool is_checkpoint = false;
  try {
    SafetensorsReader reader(path);
    tensors = reader.header().entries.size();
    is_checkpoint = reader.header().metadata.contains("progress");
    reader.visit_tensors([&](const SafetensorsEntry& entry, const at::Tensor& tensor) {
      TensorStatistics statistics;
      if (tensor.defined()) statistics.add(tensor);
      numbers += c10::multiply_integers(entry.shape);
      add_row(table,
              {entry.name, tensor.defined() ? type_name(entry.type) : entry.type_name,
               shape_text(entry.shape), size_text(static_cast<double>(entry.end - entry.begin))},
              statistics, tensor.defined() ? "" : "values are not read");
    });
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error_text(error)));
  }
  fmt::print("{}: {}, {}, {}, {}{}\n", path, checkpoint_text(path), counted(tensors, "tensor"),
             counted(numbers, "number"), file_size_text(path), written_text(path));
  if (is_checkpoint) {
    const auto damage = verify_checkpoint(path);
    if (damage) fmt::print("  damaged: {}\n", *damage);
  }
  fmt::print("\n{}", table.text());
}

void inspect_weights(const std::string& path) {
  const State tensors = load_weights(path).tensors;
  TextTable table(columns("tensor"));
  int64_t numbers = 0;
  for (const auto& [name, tensor] : tensors) {
    TensorStatistics statistics;
    statistics.add(tensor);
    numbers += tensor.numel();
    add_row(table,
            {name, type_name(tensor.scalar_type()), shape_text(tensor.sizes().vec()),
             size_text(static_cast<double>(tensor.nbytes()))},
            statistics, "");
  }
  fmt::print("{}: weights of Python, {}, {}, {}{}\n\n{}", path, counted(tensors.size(), "tensor"),
             counted(numbers, "number"), file_size_text(path), written_text(path), table.text());
}

int inspect_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const std::string& path = arguments.operands.front();
  std::error_code failed;
  if (!fs::exists(path, failed) && !fs::exists(path + ".part", failed)) {
    throw UsageError(fmt::format("stepop inspect: {}: no such file or folder", path));
  }
  if (path.ends_with(".safetensors") && !fs::is_directory(path, failed)) {
    inspect_tensors(path);
  } else if (is_weights_of_python(path)) {
    inspect_weights(path);
  } else {
    inspect_outputs(find_outputs(path));
  }
  return 0;
}

STEPOP_REGISTER_COMMAND(
    inspect_command, NoFlags,
    {.name = "inspect",
     .group = CommandGroup::kOneRun,
     .operands = "outputs.h5",
     .fewest = 1,
     .most = 1,
     .about =
         "what is in an outputs.h5 (or its folder, or a run: its newest) or in a file of weights",
     .takes = "project",
     .example = "stepop inspect logs/<time>_digits",
     .meanings = "project: a run, whose newest outputs are shown; the word alone does"});

}  // namespace

}  // namespace stepop
