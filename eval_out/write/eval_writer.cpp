#include "eval_out/write/eval_writer.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "eval_out/hdf5/hdf5_values.h"
#include "eval_out/write/eval_batch.h"
#include "eval_out/write/eval_file_writer.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/background_queue.h"

namespace stepop {
namespace {

/// The device besides the CPU from which values are copied; nothing without one.
std::optional<at::Device> device_of(const OrderedMap<EvalValue>& values) {
  for (const auto& [key, value] : values) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value);
    if (tensors != nullptr && !tensors->empty()) tensor = &tensors->front();
    if (tensor != nullptr && !tensor->is_cpu()) return tensor->device();
  }
  return std::nullopt;
}

/// Batches are gathered up to this size: each write wakes a thread and goes through HDF5 for every
/// array, which costs an evaluation with small outputs more than writing the bytes.
constexpr size_t kGatheredBytes = size_t{256} << 10;

void check_attributes(const std::string& path, const OrderedMap<Attribute>& attributes) {
  for (const char* own : {"format_version", "rows", "complete"}) {
    if (attributes.contains(own)) {
      throw Error(fmt::format("{}: the attribute \"{}\" is the writer's own", path, own));
    }
  }
}

}  // namespace

EvalWriter::EvalWriter(std::string path, int64_t rows, OrderedMap<Attribute> attributes,
                       EvalWriterOptions options)
    : path_(std::move(path)), rows_(rows), gather_time_(options.gather_time) {
  check_attributes(path_, attributes);
  if (rows < 0) throw Error(fmt::format("{}: cannot have {} rows", path_, rows));
  if (options.queued_batches < 1) {
    throw Error(fmt::format("queued_batches must be at least 1, found {}", options.queued_batches));
  }
  const std::string part = path_ + ".part";
  if (options.resume) file_ = EvalFileWriter::resume(part, rows, attributes);
  if (!file_) file_ = std::make_unique<EvalFileWriter>(part, rows, attributes, options.compression);
  file_->class_names = std::move(options.class_names);
  file_->dataset_size = options.dataset_size;
  file_->source_rows = std::move(options.source_rows);
  next_row_ = file_->first_row();
  last_index_ = file_->last_index();
  queue_ = std::make_unique<BackgroundQueue<std::vector<EvalBatch>>>(
      "writes outputs", static_cast<size_t>(options.queued_batches),
      [this](const std::vector<EvalBatch>& batches) {
        for (const EvalBatch& batch : batches) {
          if (batch.copied) batch.copied->synchronize();
        }
        if (batches.size() == 1) {
          file_->write(batches[0]);
        } else {
          file_->write(join_batches(batches));
        }
      });
}

EvalWriter::~EvalWriter() {
  try {
    push_gathered();
  } catch (const std::exception&) {
    // A write failed, which `write` or `finish` has reported.
  }
}

/// Throws for rows that cannot be the next ones.
void EvalWriter::check_rows(const std::vector<EvalArray>& arrays,
                            std::span<const int64_t> indices) const {
  const std::string rows = rows_text(next_row_, indices.size());
  if (next_row_ > 0) {
    try {
      check_same(file_->arrays, arrays, rows);
    } catch (const Error& error) {
      if (next_row_ != file_->first_row()) throw;
      throw Error(
          fmt::format("{}; {} rows are in {}, which is resumed: it is damaged, or of "
                      "another eval_op: remove it to start again",
                      error.what(), next_row_, file_->part()));
    }
  }
  if (static_cast<int64_t>(indices.size()) > rows_ - next_row_) {
    throw Error(
        fmt::format("{}: {} are more than the {} that it was made for", path_, rows, rows_));
  }
  int64_t last_index = last_index_;
  for (const int64_t index : indices) {
    if (index <= last_index) {
      throw Error(
          fmt::format("{}: {}: example {} comes after example {}; the rows are written "
                      "once each, in the dataset's order",
                      path_, rows, index, last_index));
    }
    last_index = index;
  }
}

void EvalWriter::write(const EvalOutputs& outputs, std::span<const int64_t> indices) {
  if (is_finished_) throw Error(path_ + " is finished, it takes no more rows");
  queue_->check();
  if (indices.empty()) return;

  const auto count = static_cast<int64_t>(indices.size());
  const OrderedMap<EvalValue> values = flatten(outputs);
  std::vector<EvalArray> arrays = describe(values, count);
  check_rows(arrays, indices);
  if (next_row_ == 0) file_->arrays = std::move(arrays);
  EvalBatch batch{next_row_, {indices.begin(), indices.end()}, {}, {}};
  if (spares_.empty()) spares_ = queue_->take_done().value_or(std::vector<EvalBatch>{});
  EvalBatch spare;
  if (!spares_.empty()) {
    spare = std::move(spares_.back());
    spares_.pop_back();
  }
  spare.columns.resize(file_->arrays.size());
  for (size_t i = 0; i < spare.columns.size(); ++i) {
    const EvalArray& array = file_->arrays[i];
    batch.columns.push_back(to_column(array, values.at(array.key), std::move(spare.columns[i])));
  }
  if (const auto device = device_of(values)) {
    batch.copied.emplace(device->type());
    batch.copied->record(c10::impl::VirtualGuardImpl(device->type()).getStream(*device));
  }
  gathered_bytes_ += batch.bytes();
  gathered_.push_back(std::move(batch));
  next_row_ += count;
  last_index_ = indices.back();
  // The first batch is written at once, to detect a disk that is too small: last_push_ is long ago.
  if (gathered_bytes_ >= kGatheredBytes ||
      std::chrono::steady_clock::now() - last_push_ >= gather_time_) {
    push_gathered();
  }
}

void EvalWriter::push_gathered() {
  if (gathered_.empty()) return;
  gathered_bytes_ = 0;
  queue_->push(std::exchange(gathered_, {}));
  last_push_ = std::chrono::steady_clock::now();
}

void EvalWriter::finish() {
  if (is_finished_) return;
  push_gathered();
  queue_->drain();
  if (next_row_ != rows_) {
    throw Error(fmt::format("{}: only {} of {} rows were written", path_, next_row_, rows_));
  }
  queue_->close();
  file_->finish();
  rename_into_place(file_->part(), path_);
  is_finished_ = true;
}

}  // namespace stepop
