#include "runtime/data/dataset.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/text.h"
#include "runtime/data/load_watch.h"

namespace stepop {

DatasetRegistry& datasets() {
  static DatasetRegistry registry("dataset");
  return registry;
}

void check_index(int64_t index, int64_t size) {
  if (index >= 0 && index < size) return;
  throw Error(fmt::format("there is no example {}: the dataset has {}", index, size));
}

std::string get_file(const Config& params, std::string_view key) {
  const std::string path = params.get_path(key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw params.error(key, "no such file: " + path);
  if (std::filesystem::is_directory(path, ignored)) {
    throw params.error(key, "expected a file, found a folder: " + path);
  }
  return path;
}

std::string get_folder(const Config& params, std::string_view key) {
  const std::string path = params.get_path(key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw params.error(key, "no such folder: " + path);
  if (!std::filesystem::is_directory(path, ignored)) {
    throw params.error(key, "expected a folder, found a file: " + path);
  }
  return path;
}

namespace {

std::string examples_text(std::span<const int64_t> indices) {
  std::vector<std::string> numbers;
  for (const int64_t index : indices) numbers.push_back(std::to_string(index));
  return "examples " + list_text(numbers);
}

/// The dataset's own `get_batch`. An exception that is not a std::exception names no example.
std::optional<Batch> gather(const Dataset& dataset, std::span<const int64_t> indices,
                            std::span<Random> randoms) {
  try {
    return dataset.get_batch(indices, randoms);
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    throw Error(fmt::format("{}: {}", examples_text(indices), text_of_current_exception()));
  }
}

}  // namespace

Batch load_batch(const Dataset& dataset, std::span<const int64_t> indices,
                 std::span<Random> randoms) {
  std::vector<int64_t> index_list(indices.begin(), indices.end());
  const LoadWatch::Scope within(nullptr);
  LoadWatch* const watch = within.outer();
  if (watch != nullptr) watch->begin(examples_text(indices));
  Batch batch;
  if (auto gathered = gather(dataset, indices, randoms)) {
    batch = std::move(*gathered);
  } else {
    std::vector<Example> examples;
    examples.reserve(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (watch != nullptr) watch->begin(fmt::format("example {}", indices[i]));
      try {
        examples.push_back(dataset.get(indices[i], randoms[i]));
      } catch (const Interrupted&) {
        throw;
      } catch (...) {
        throw Error(fmt::format("example {}: {}", indices[i], text_of_current_exception()));
      }
    }
    if (watch != nullptr) watch->begin("the collate of " + examples_text(indices));
    batch = dataset.collate(examples, index_list);
  }
  if (watch != nullptr) watch->end();
  if (!batch.contains("index")) {
    at::Tensor index = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
    std::copy(indices.begin(), indices.end(), index.mutable_data_ptr<int64_t>());
    batch.set("index", std::move(index));
  }
  batch.set_indices(std::move(index_list));
  return batch;
}

}  // namespace stepop
