#include "eval_out/datasets/array_table.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {
namespace {

/// Tensors [length, ...] as one tensor [B, longest, ...], padded with zeros.
at::Tensor padded(const std::vector<at::Tensor>& parts) {
  std::vector<int64_t> shape = parts.at(0).sizes().vec();
  for (const auto& part : parts) shape[0] = std::max(shape[0], part.size(0));
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  at::Tensor all = at::zeros(shape, parts[0].options());
  for (size_t i = 0; i < parts.size(); ++i) {
    all[static_cast<int64_t>(i)].slice(0, 0, parts[i].size(0)).copy_(parts[i]);
  }
  return all;
}

at::Tensor lengths_of(const std::vector<at::Tensor>& parts) {
  at::Tensor lengths = at::empty({static_cast<int64_t>(parts.size())}, at::kLong);
  auto* length = lengths.mutable_data_ptr<int64_t>();
  for (const auto& part : parts) *length++ = part.size(0);
  return lengths;
}

/// Adds one array; an empty `key` stands for the array's own name.
void add_key(const Config& params, const std::string& place, std::string key, const Value& array,
             std::vector<ArrayKey>& keys) {
  if (!array.is_text() || array.as_text().empty()) {
    throw params.error(place, "expected the name of an array, found " + array.describe());
  }
  std::string name = array.as_text();
  if (name.starts_with('/')) name.erase(0, 1);
  const bool is_listed = key.empty();
  if (is_listed) key = name;
  if (key == "index") {
    throw params.error(place,
                       "\"index\" is each example's place in the dataset; read the array under "
                       "another key: keys: {row: index}");
  }
  for (const auto& other : keys) {
    if (other.key == key) throw params.error(place, fmt::format("\"{}\" is there twice", key));
  }
  keys.push_back({std::move(key), std::move(name), place, is_listed});
}

/// Adds the arrays of a map; `parent` is the map's own key.
void add_keys(const Config& params, const std::string& parent, const Value& map,
              std::vector<ArrayKey>& keys) {
  for (const auto& [name, value] : map.as_map()) {
    const std::string key = join_path(parent, name);
    if (value.is_map()) {
      add_keys(params, key, value, keys);
    } else {
      add_key(params, join_path("keys", key), key, value, keys);
    }
  }
}

}  // namespace

void declare_cache_bytes(Parameters& p, int64_t& bytes) {
  p.add("cache_bytes", bytes, "arrays up to this size in all are kept in memory", at_least(0));
}

std::optional<std::vector<ArrayKey>> read_array_keys(const Config& params) {
  if (!params.has("keys")) return std::nullopt;
  const auto value = params.get<Value>("keys");
  std::vector<ArrayKey> keys;
  if (value.is_map()) {
    add_keys(params, "", value, keys);
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.as_list().size(); ++i) {
      add_key(params, fmt::format("keys/{}", i), "", value.as_list()[i], keys);
    }
  } else {
    throw params.error("keys", fmt::format("expected a map from keys to arrays, such as {{image: "
                                           "data/x}}, or a list of arrays, found {}",
                                           value.describe()));
  }
  if (keys.empty()) throw params.error("keys", "names no array");
  return keys;
}

std::vector<at::Tensor> ArrayTable::Column::ragged(std::span<const int64_t> examples) const {
  std::vector<int64_t> wanted;  // the rows of `values`
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const int64_t example : examples) {
    const auto begin = static_cast<int64_t>(wanted.size());
    const auto at = static_cast<size_t>(example);
    for (int64_t row = offsets[at]; row < offsets[at + 1]; ++row) wanted.push_back(row);
    places.emplace_back(begin, static_cast<int64_t>(wanted.size()));
  }
  const at::Tensor all = rows.gather(wanted);
  std::vector<at::Tensor> parts;
  for (const auto& [begin, end] : places) parts.push_back(all.slice(0, begin, end));
  return parts;
}

void ArrayTable::add(std::string key, Hdf5Rows rows) {
  columns_.push_back({std::move(key), std::move(rows)});
}

void ArrayTable::add_ragged(std::string key, std::vector<int64_t> offsets, Hdf5Rows values) {
  columns_.push_back({std::move(key), std::move(values), std::move(offsets)});
}

void ArrayTable::keep(double bytes) {
  std::vector<std::pair<double, size_t>> sizes;
  for (size_t i = 0; i < columns_.size(); ++i) sizes.emplace_back(columns_[i].rows.bytes(), i);
  std::sort(sizes.begin(), sizes.end());
  for (const auto& [size, column] : sizes) {
    if ((bytes -= size) < 0) return;
    columns_[column].rows.keep();
  }
}

Example ArrayTable::example(int64_t row) const {
  Example example;
  const std::span<const int64_t> rows(&row, 1);
  for (const auto& column : columns_) {
    if (!column.offsets.empty()) {
      const at::Tensor part = column.ragged(rows)[0];
      example.tensors.set(column.key, part);
      example.tensors.set(column.key + kLengths, at::scalar_tensor(part.size(0), at::kLong));
    } else if (column.rows.array().is_text) {
      example.texts.set(column.key, column.rows.gather_texts(rows)[0]);
    } else {
      example.tensors.set(column.key, column.rows.gather(rows)[0]);
    }
  }
  return example;
}

void ArrayTable::gather(std::span<const int64_t> rows, OrderedMap<at::Tensor>& tensors,
                        OrderedMap<std::vector<std::string>>& texts) const {
  for (const auto& column : columns_) {
    if (!column.offsets.empty()) {
      const std::vector<at::Tensor> parts = column.ragged(rows);
      tensors.set(column.key, padded(parts));
      tensors.set(column.key + kLengths, lengths_of(parts));
    } else if (column.rows.array().is_text) {
      texts.set(column.key, column.rows.gather_texts(rows));
    } else {
      tensors.set(column.key, column.rows.gather(rows));
    }
  }
}

void ArrayTable::collate_ragged(std::vector<Example>& examples,
                                OrderedMap<at::Tensor>& tensors) const {
  for (const auto& column : columns_) {
    if (column.offsets.empty()) continue;
    std::vector<at::Tensor> parts;
    for (auto& example : examples) {
      parts.push_back(example.tensors.at(column.key));
      example.tensors.erase(column.key);
      example.tensors.erase(column.key + kLengths);
    }
    tensors.set(column.key, padded(parts));
    tensors.set(column.key + kLengths, lengths_of(parts));
  }
}

at::Tensor ArrayTable::labels(std::string_view key) const {
  for (const auto& column : columns_) {
    if (column.key != key || column.rows.array().is_text || !column.offsets.empty()) continue;
    const bool is_small = column.rows.array().shape.size() == 1;
    if (column.rows.kept().defined()) return column.rows.kept();
    if (is_small) return column.rows.read(0, column.rows.rows());
  }
  return {};
}

std::vector<std::string> ArrayTable::label_keys() const {
  std::vector<std::string> keys;
  for (const auto& column : columns_) {
    const bool is_small = column.rows.array().shape.size() == 1;
    if (column.rows.array().is_text || !column.offsets.empty()) continue;
    if (is_small || column.rows.kept().defined()) keys.push_back(column.key);
  }
  return keys;
}

}  // namespace stepop
