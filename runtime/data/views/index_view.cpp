#include "runtime/data/views/index_view.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The rows of a batch that come from one source.
struct Part {
  std::vector<int64_t> rows;     ///< The rows in the batch.
  std::vector<int64_t> indices;  ///< The indices in the source.
  std::vector<int64_t> outer;    ///< The indices in the view.
  std::vector<Random> randoms;
  Batch batch;
};

bool is_like(const at::Tensor& tensor, const at::Tensor* other) {
  return other != nullptr && other->scalar_type() == tensor.scalar_type() &&
         other->sizes().slice(1) == tensor.sizes().slice(1) && other->device().is_cpu() &&
         other->layout() == at::kStrided && !other->is_quantized();
}

/// Whether examples of both have the same keys, types and shapes.
bool are_alike(const BatchRows& a, const BatchRows& b) {
  const auto is_in_b = [&](const auto& entry) {
    return is_like(entry.second, b.tensors.find(entry.first));
  };
  const auto is_text_in_b = [&](const auto& entry) { return b.texts.contains(entry.first); };
  return a.tensors.size() == b.tensors.size() && a.texts.size() == b.texts.size() &&
         std::all_of(a.tensors.begin(), a.tensors.end(), is_in_b) &&
         std::all_of(a.texts.begin(), a.texts.end(), is_text_in_b);
}

/// The sources as writers; empty unless all sources write rows of the same form that leave the
/// `source_key` free.
std::vector<const RowWriter*> writers_of(std::span<const Source> sources,
                                         const std::string& source_key) {
  std::vector<const RowWriter*> writers;
  std::optional<BatchRows> first;
  for (const Source& source : sources) {
    const RowWriter* writer = source.writer();
    auto rows = writer == nullptr ? std::nullopt : writer->rows_for(0);
    if (!rows || rows->tensors.contains(source_key)) return {};
    if (first && !are_alike(*first, *rows)) return {};
    if (!first) first = std::move(rows);
    writers.push_back(writer);
  }
  return writers;
}

/// The parts' rows in the order of the batch; empty when the parts do not fit each other.
std::optional<Batch> interleaved(const std::vector<Part*>& parts, int64_t count) {
  const Batch& first = parts.front()->batch;
  for (const Part* part : parts) {
    if (part->batch.tensors().size() != first.tensors().size() ||
        part->batch.texts().size() != first.texts().size()) {
      return std::nullopt;
    }
  }
  OrderedMap<at::Tensor> tensors;
  for (const auto& [key, tensor] : first.tensors()) {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape[0] = count;
    const at::Tensor out = at::empty(shape, tensor.options());
    if (!out.device().is_cpu()) return std::nullopt;
    auto* to = static_cast<char*>(out.mutable_data_ptr());
    const size_t bytes = out.nbytes() / static_cast<size_t>(count);
    for (const Part* part : parts) {
      const at::Tensor* values = part->batch.tensors().find(key);
      if (!is_like(tensor, values)) return std::nullopt;
      const at::Tensor rows = values->contiguous();
      const auto* from = static_cast<const char*>(rows.const_data_ptr());
      for (size_t i = 0; i < part->rows.size() && bytes > 0; ++i) {
        std::memcpy(to + static_cast<size_t>(part->rows[i]) * bytes, from + i * bytes, bytes);
      }
    }
    tensors.set(key, out);
  }
  OrderedMap<std::vector<std::string>> texts;
  for (const auto& [key, unused] : first.texts()) {
    std::vector<std::string> all(static_cast<size_t>(count));
    for (const Part* part : parts) {
      const auto* values = part->batch.texts().find(key);
      if (values == nullptr) return std::nullopt;
      for (size_t i = 0; i < part->rows.size(); ++i) {
        all[static_cast<size_t>(part->rows[i])] = (*values)[i];
      }
    }
    texts.set(key, std::move(all));
  }
  return Batch(std::move(tensors), std::move(texts), {});
}

template <class Map>
void check_free(const Map& tensors, const std::string& source_key) {
  if (!tensors.contains(source_key)) return;
  throw Error(
      fmt::format("the examples have \"{}\" already: choose another source_key", source_key));
}

}  // namespace

IndexView::IndexView(std::vector<Source> sources, std::string source_key)
    : sources_(std::move(sources)), source_key_(std::move(source_key)) {
  writers_ = writers_of(sources_, source_key_);
}

Example IndexView::get(int64_t index, Random& random) const {
  check_index(index, size());
  const Place place = place_of(index);
  Example example = sources_[place.source].get(place.index, random);
  if (!source_key_.empty()) {
    check_free(example.tensors, source_key_);
    example.tensors.set(source_key_,
                        at::scalar_tensor(static_cast<int64_t>(place.source), at::kLong));
  }
  return example;
}

std::optional<Batch> IndexView::get_batch(std::span<const int64_t> indices,
                                          std::span<Random> randoms) const {
  if (!can_gather_.load(std::memory_order_relaxed) || indices.empty()) return std::nullopt;
  if (sources_.size() > 1 && !writers_.empty()) return write(indices, randoms);
  std::optional<Batch> batch = gather(indices, randoms);
  if (!batch || source_key_.empty()) return batch;
  check_free(batch->tensors(), source_key_);
  const at::Tensor numbers = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
  auto* values = numbers.mutable_data_ptr<int64_t>();
  for (const int64_t index : indices) *values++ = static_cast<int64_t>(place_of(index).source);
  batch->set(source_key_, numbers);
  return batch;
}

Batch IndexView::write(std::span<const int64_t> indices, std::span<Random> randoms) const {
  BatchRows rows = *rows_for(static_cast<int64_t>(indices.size()));
  for (size_t i = 0; i < indices.size(); ++i) {
    try {
      write_row(indices[i], randoms[i], static_cast<int64_t>(i), rows);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(fmt::format("example {}: {}", indices[i], error_text(error)));
    }
  }
  return {std::move(rows.tensors), std::move(rows.texts), {indices.begin(), indices.end()}};
}

std::optional<BatchRows> IndexView::rows_for(int64_t count) const {
  if (writers_.empty()) return std::nullopt;
  std::optional<BatchRows> rows = writers_[0]->rows_for(count);
  if (!source_key_.empty()) rows->tensors.set(source_key_, at::empty({count}, at::kLong));
  return rows;
}

void IndexView::write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const {
  check_index(index, size());
  const Place place = place_of(index);
  sources_[place.source].write_row(*writers_[place.source], place.index, random, row, rows);
  if (source_key_.empty()) return;
  *rows.at<int64_t>(source_key_, row) = static_cast<int64_t>(place.source);
}

std::optional<Batch> IndexView::gather(std::span<const int64_t> indices,
                                       std::span<Random> randoms) const {
  const int64_t all = size();
  if (sources_.size() == 1) {
    std::vector<int64_t> inner;
    inner.reserve(indices.size());
    for (const int64_t index : indices) {
      check_index(index, all);
      inner.push_back(place_of(index).index);
    }
    return sources_[0].load(inner, randoms, indices);
  }
  std::vector<Part> parts(sources_.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    check_index(indices[i], all);
    const Place place = place_of(indices[i]);
    Part& part = parts[place.source];
    part.rows.push_back(static_cast<int64_t>(i));
    part.indices.push_back(place.index);
    part.outer.push_back(indices[i]);
    part.randoms.push_back(randoms[i]);
  }
  std::vector<Part*> used;
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (part.rows.empty()) continue;
    auto batch = sources_[i].gather(part.indices, part.randoms, part.outer);
    if (!batch) {
      can_gather_.store(false, std::memory_order_relaxed);
      return std::nullopt;
    }
    if (part.rows.size() == indices.size()) return batch;
    part.batch = std::move(*batch);
    used.push_back(&part);
  }
  auto batch = interleaved(used, static_cast<int64_t>(indices.size()));
  // The parts do not fit, for example because `collate` pads them to different lengths. From here
  // on, batches are loaded example by example.
  if (!batch) can_gather_.store(false, std::memory_order_relaxed);
  return batch;
}

bool IndexView::have_labels(std::string_view key) const {
  at::Tensor first;
  for (const Source& source : sources_) {
    const at::Tensor labels = source.labels(key);
    if (!labels.defined() || labels.dim() == 0 || labels.size(0) != source.size()) return false;
    if (!first.defined()) first = labels;
    if (labels.sizes().slice(1) != first.sizes().slice(1)) return false;
  }
  return true;
}

at::Tensor IndexView::labels(std::string_view key) const {
  const bool is_source = !source_key_.empty() && key == source_key_;
  if (!is_source && !have_labels(key)) return {};
  const at::Tensor chosen = at::empty({size()}, at::kLong);
  auto* values = chosen.mutable_data_ptr<int64_t>();
  std::vector<int64_t> begins;
  std::vector<at::Tensor> labels;
  int64_t begin = 0;
  for (const Source& source : sources_) {
    begins.push_back(begin);
    begin += source.size();
    if (!is_source) labels.push_back(source.labels(key));
  }
  for (int64_t i = 0; i < size(); ++i) {
    const Place place = place_of(i);
    values[i] = is_source ? static_cast<int64_t>(place.source) : begins[place.source] + place.index;
  }
  if (is_source) return chosen;
  return (labels.size() == 1 ? labels[0] : at::cat(labels)).index_select(0, chosen);
}

std::vector<std::string> IndexView::label_keys() const {
  std::vector<std::string> keys;
  for (const auto& key : sources_[0]->label_keys()) {
    if (key != source_key_ && have_labels(key)) keys.push_back(key);
  }
  if (!source_key_.empty()) keys.push_back(source_key_);
  return keys;
}

std::optional<SourceRows> IndexView::source_rows() const {
  if (sources_.size() != 1) return std::nullopt;
  const at::Tensor chosen = at::empty({size()}, at::kLong);
  auto* values = chosen.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < size(); ++i) values[i] = place_of(i).index;
  const auto inner = sources_[0]->source_rows();
  if (!inner) return SourceRows{chosen, sources_[0].size()};
  return SourceRows{inner->rows.index_select(0, chosen), inner->count};
}

Batch IndexView::collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const {
  return sources_[0]->collate(examples, std::move(indices));
}

}  // namespace stepop
