#include "runtime/data/dataset.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace stepop {

DatasetRegistry& datasets() {
  static DatasetRegistry registry("dataset");
  return registry;
}

Batch load_batch(const Dataset& dataset, std::span<const int64_t> indices,
                 std::span<Random> randoms) {
  std::vector<int64_t> index_list(indices.begin(), indices.end());
  Batch batch;
  if (auto gathered = dataset.get_batch(indices, randoms)) {
    batch = std::move(*gathered);
  } else {
    std::vector<Example> examples;
    examples.reserve(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      try {
        examples.push_back(dataset.get(indices[i], randoms[i]));
      } catch (const std::exception& error) {
        throw Error(fmt::format("example {}: {}", indices[i], error_text(error)));
      }
    }
    batch = dataset.collate(examples, index_list);
  }
  if (!batch.contains("index")) {
    at::Tensor index = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
    std::copy(indices.begin(), indices.end(), index.mutable_data_ptr<int64_t>());
    batch.set("index", std::move(index));
  }
  batch.set_indices(std::move(index_list));
  return batch;
}

}  // namespace stepop
