#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/datasets/array_table.h"
#include "eval_out/hdf5/hdf5_probe.h"
#include "runtime/core/base/text.h"
#include "runtime/data/dataset.h"

namespace stepop {
namespace {

std::string list_of(const std::vector<Hdf5Array>& arrays) {
  std::vector<std::string> texts;
  for (const auto& array : arrays) texts.push_back(array.describe());
  return list_text(texts);
}

/// The array that `key` names, found among `arrays`.
const Hdf5Array& find_array(const Config& params, const std::string& path, const ArrayKey& key,
                            const std::vector<Hdf5Array>& arrays) {
  for (const auto& array : arrays) {
    if (array.name != key.array) continue;
    if (array.has_rows()) return array;
    throw params.error(key.place, fmt::format("{}: {} cannot be split into examples; an array of "
                                              "numbers is [N, ...], one of text [N]",
                                              path, array.describe()));
  }
  throw params.error(key.place, fmt::format("{} has no array \"{}\"; there are: {}", path,
                                            key.array, list_of(arrays)));
}

/// The chosen arrays, or all arrays with the most common first dimension.
std::vector<std::pair<std::string, Hdf5Array>> choose(
    const Config& params, const std::string& path, const std::optional<std::vector<ArrayKey>>& keys,
    const std::vector<Hdf5Array>& arrays) {
  std::vector<std::pair<std::string, Hdf5Array>> chosen;
  if (keys) {
    for (const auto& key : *keys) {
      chosen.emplace_back(key.key, find_array(params, path, key, arrays));
    }
    for (const auto& [key, array] : chosen) {
      if (array.shape[0] == chosen[0].second.shape[0]) continue;
      throw params.error("keys",
                         fmt::format("{}: {} and {} differ in their first dimension, the number of "
                                     "examples",
                                     path, chosen[0].second.describe(), array.describe()));
    }
    return chosen;
  }
  std::map<int64_t, int> counts;
  for (const auto& array : arrays) {
    if (array.has_rows() && array.name != "index") ++counts[array.shape[0]];
  }
  if (counts.empty()) {
    throw params.error("path", fmt::format("{} has no array of numbers [N, ...] or text [N]; "
                                           "there are: {}",
                                           path, list_of(arrays)));
  }
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto most = *std::max_element(counts.begin(), counts.end(), fewer);
  for (const auto& [rows, count] : counts) {
    if (rows == most.first || count < most.second) continue;
    throw params.error(
        "path", fmt::format("{}: as many arrays have {} rows as have {}, so nothing shows "
                            "which are the examples; choose them with keys: [...]; there are: {}",
                            path, most.first, rows, list_of(arrays)));
  }
  for (const auto& array : arrays) {
    if (!array.has_rows() || array.name == "index" || array.shape[0] != most.first) continue;
    chosen.emplace_back(array.name, array);
  }
  return chosen;
}

/// Any HDF5 file with arrays [N, ...]; eval_out/README.md has its parameters.
class Hdf5Dataset : public Dataset {
 public:
  struct Params {
    InputFile path;
    std::optional<std::vector<ArrayKey>> keys;
    int64_t cache_bytes = kArrayCacheBytes;

    void declare(Parameters& p) {
      p.require("path", path, "the file");
      declare_cache_bytes(p, cache_bytes);
      const Config* config = p.describe_optional(
          "keys", "map | list",
          "map from a key in the batch to an array, {image: data/x}, or a list of arrays; none: "
          "all whose first dimension is the most common one");
      if (config != nullptr) keys = read_array_keys(*config);
    }
  };

  Hdf5Dataset(const Params& params, const Config& config) {
    const std::string& path = params.path.text;
    const Hdf5Lock lock;
    probe_hdf5(path);
    const Hdf5Id file = open_hdf5(path);
    const auto arrays = in_hdf5_file(path, [&] { return list_hdf5(file); });
    for (auto& [key, array] : choose(config, path, params.keys, arrays)) {
      size_ = array.shape[0];
      table_.add(key, Hdf5Rows(file, path, array));
    }
    if (size_ == 0) throw Error(path + ": holds no examples: its arrays have 0 rows");
    table_.keep(static_cast<double>(params.cache_bytes));
  }

  int64_t size() const override { return size_; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size_);
    return table_.example(index);
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
    for (const int64_t index : indices) check_index(index, size_);
    OrderedMap<at::Tensor> tensors;
    OrderedMap<std::vector<std::string>> texts;
    table_.gather(indices, tensors, texts);
    return Batch(std::move(tensors), std::move(texts), {indices.begin(), indices.end()});
  }

  at::Tensor labels(std::string_view key) const override { return table_.labels(key); }
  std::vector<std::string> label_keys() const override { return table_.label_keys(); }

 private:
  ArrayTable table_;
  int64_t size_ = 0;
};

STEPOP_REGISTER(
    datasets(), "Hdf5", [](const Config& params) { return make_component<Hdf5Dataset>(params); },
    about_class<Hdf5Dataset>({"Arrays [N, ...] of any HDF5 file, as they are stored."}));

}  // namespace
}  // namespace stepop
