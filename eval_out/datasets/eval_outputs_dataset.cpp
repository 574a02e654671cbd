#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/datasets/array_table.h"
#include "eval_out/datasets/stored_class_names.h"
#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/class_renumberings.h"
#include "runtime/data/dataset.h"

namespace stepop {
namespace {

/// `logits` of `outputs/logits`.
std::string short_key(const std::string& key) { return key.substr(key.find('/') + 1); }

/// The key in the file to which a key in the config refers.
std::string key_in_file(const Config& params, const EvalFile& file, const ArrayKey& key) {
  const std::vector<std::string> found = file.keys_named(key.array);
  if (found.size() == 1) return found[0];
  if (found.size() > 1) {
    throw params.error(key.place, fmt::format("{}: \"{}\" may be {} or {}; give the whole name",
                                              file.path(), key.array, found[0], found[1]));
  }
  throw params.error(key.place, fmt::format("{} has no \"{}\"; there are: {}", file.path(),
                                            key.array, file.key_list()));
}

/// Keys in a batch and in the file.
using Chosen = std::vector<std::pair<std::string, std::string>>;

Chosen choose(const Config& params, const EvalFile& file,
              const std::optional<std::vector<ArrayKey>>& keys) {
  Chosen chosen;
  if (keys) {
    for (const auto& key : *keys) {
      // In a list the group is not part of the key.
      const std::string in_file = key_in_file(params, file, key);
      chosen.emplace_back(key.is_listed ? short_key(in_file) : key.key, in_file);
    }
  } else {
    for (const auto& key : file.keys()) {
      if (!key.starts_with(kWeights)) chosen.emplace_back(short_key(key), key);
    }
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (chosen[i].first != chosen[j].first) continue;
      throw params.error(
          keys ? "keys" : "path",
          fmt::format("{}: {} and {} would both be \"{}\"; choose other keys: keys: {{{}: {}, "
                      "other_{}: {}}}",
                      file.path(), chosen[j].second, chosen[i].second, chosen[i].first,
                      chosen[j].first, chosen[j].second, chosen[i].first, chosen[i].second));
    }
  }
  if (chosen.empty()) throw params.error("path", file.path() + ": holds no outputs and no labels");
  return chosen;
}

std::vector<int64_t> numbers(const at::Tensor& tensor) {
  const auto* values = tensor.const_data_ptr<int64_t>();
  return {values, values + tensor.numel()};
}

const Hdf5Array& named(const std::vector<Hdf5Array>& arrays, const std::string& name,
                       const std::string& path) {
  for (const auto& array : arrays) {
    if (array.name != name) continue;
    if (array.has_rows()) return array;
    throw Error(
        fmt::format("{}: expected rows of numbers or text, found {}", path, array.describe()));
  }
  throw Error(fmt::format("{}: no array {}", path, name));
}

/// The offset of each example's values, and the end of the last, [rows + 1].
std::vector<int64_t> read_offsets(hid_t file, const EvalFile& outputs, const std::string& key,
                                  const std::vector<Hdf5Array>& arrays) {
  const std::string name = key + "/offsets";
  const Hdf5Rows array(file, outputs.path(), named(arrays, name, outputs.path()));
  if (array.array().dtype != at::kLong || array.array().shape.size() != 1 ||
      array.rows() <= outputs.rows()) {
    throw Error(fmt::format("{}: expected {} int64 in {}, found {}", outputs.path(),
                            outputs.rows() + 1, name, array.array().describe()));
  }
  const auto offsets = numbers(array.read(0, outputs.rows() + 1));
  const int64_t values = named(arrays, key + "/values", outputs.path()).shape[0];
  if (offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
      offsets.back() > values) {
    throw Error(fmt::format("{}: {} do not increase from 0 to at most the {} values",
                            outputs.path(), name, values));
  }
  return offsets;
}

/// Outputs of an evaluation, joined with the evaluated dataset if it is given; see
/// eval_out/README.md for the parameters.
class EvalOutputsDataset : public Dataset {
 public:
  struct Params {
    std::string path;
    std::optional<std::vector<ArrayKey>> keys;
    std::unique_ptr<Dataset> dataset;
    bool allow_incomplete = false;
    int64_t cache_bytes = kArrayCacheBytes;

    void declare(Parameters& p) {
      p.add("allow_incomplete", allow_incomplete,
            "whether to take the rows of an evaluation that was cut short");
      declare_cache_bytes(p, cache_bytes);
      const Config* config = p.describe_required(
          "path", "path", "outputs.h5, the folder of an evaluation, or a run: its latest one");
      if (config != nullptr) path = find_outputs(config->get_path("path"));
      config = p.describe_optional(
          "keys", "map | list",
          "map from a key in the batch to an output or label, {teacher: logits}, or a list; none: "
          "all, without outputs/ and labels/");
      if (config != nullptr) keys = read_array_keys(*config);
      p.add("dataset", dataset, "the dataset that was evaluated, such as {class: Idx, ...}");
    }
  };

  EvalOutputsDataset(Params params, const Config& config) : source_(std::move(params.dataset)) {
    const EvalFile file = open(config, params.path, params.allow_incomplete);
    index_ = numbers(file.index());
    const auto chosen = choose(config, file, params.keys);
    read_arrays(config, file, chosen);
    number_classes(config, file, chosen);
    table_.keep(static_cast<double>(params.cache_bytes));
    if (source_) check_joined(config, file, chosen);
  }

  int64_t size() const override { return static_cast<int64_t>(index_.size()); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    Example example = table_.example(index);
    classes_.apply(example.tensors);
    if (!source_) return example;
    const Example joined = source_->get(index_[static_cast<size_t>(index)], random);
    for (const auto& [key, value] : joined.tensors) example.tensors.set(key, value);
    for (const auto& [key, value] : joined.texts) example.texts.set(key, value);
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    for (const int64_t index : indices) check_index(index, size());
    OrderedMap<at::Tensor> tensors;
    OrderedMap<std::vector<std::string>> texts;
    table_.gather(indices, tensors, texts);
    classes_.apply(tensors);
    if (source_) {
      std::vector<int64_t> rows;
      for (const int64_t index : indices) rows.push_back(index_[static_cast<size_t>(index)]);
      add(load_batch(*source_, rows, randoms), tensors, texts);
    }
    return Batch(std::move(tensors), std::move(texts), {indices.begin(), indices.end()});
  }

  /// The labels of the outputs, or else of the joined dataset.
  at::Tensor labels(std::string_view key) const override {
    at::Tensor values = classes_.apply(key, table_.labels(key));
    if (values.defined() || !source_) return values;
    values = source_->labels(key);
    if (!values.defined()) return values;
    at::Tensor rows = at::empty({size()}, at::kLong);
    std::copy(index_.begin(), index_.end(), rows.mutable_data_ptr<int64_t>());
    return values.index_select(0, rows);
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys = table_.label_keys();
    if (!source_) return keys;
    for (auto& key : source_->label_keys()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
    }
    return keys;
  }

  std::string notice() const override {
    return joined_notices({classes_.notice(whole_keys_), source_ ? source_->notice() : ""});
  }

  /// Used only by a dataset that changes these examples; `get_batch` loads whole batches.
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    OrderedMap<at::Tensor> tensors;
    OrderedMap<std::vector<std::string>> texts;
    std::vector<Example> even = examples;
    table_.collate_ragged(even, tensors);
    add(source_ ? source_->collate(even, indices) : stepop::collate(even, indices), tensors, texts);
    return {std::move(tensors), std::move(texts), std::move(indices)};
  }

 private:
  static EvalFile open(const Config& params, const std::string& path, bool allow_incomplete) {
    EvalFile file(path);
    params.note_opened("path", file.path());
    if (!file.complete() && !allow_incomplete) {
      throw params.error(
          "path",
          fmt::format("{}: an unfinished evaluation of {}; allow_incomplete: true takes them",
                      file.path(), counted(file.rows(), "row")));
    }
    if (file.rows() <= 0) throw params.error("path", file.path() + ": holds no rows");
    return file;
  }

  static void add(const Batch& batch, OrderedMap<at::Tensor>& tensors,
                  OrderedMap<std::vector<std::string>>& texts) {
    for (const auto& [key, value] : batch.tensors()) {
      if (key != "index") tensors.set(key, value);  // the example's place in the joined dataset
    }
    for (const auto& [key, value] : batch.texts()) texts.set(key, value);
  }

  void read_arrays(const Config& params, const EvalFile& file, const Chosen& chosen) {
    const Hdf5Lock lock;
    const Hdf5Id id = open_hdf5(file.path());
    const auto arrays = in_hdf5_file(file.path(), [&] { return list_hdf5(id); });
    for (const auto& [key, in_file] : chosen) {
      if (key == "index") {
        throw params.error(
            "keys", fmt::format("\"index\" is each example's place in the dataset; read {} under "
                                "another key: keys: {{row: {}}}",
                                in_file, in_file));
      }
      if (file.array(in_file).kind == EvalKind::kRagged) {
        table_.add_ragged(
            key, read_offsets(id, file, in_file, arrays),
            Hdf5Rows(id, file.path(), named(arrays, in_file + "/values", file.path())));
      } else {
        table_.add(key,
                   Hdf5Rows(id, file.path(), named(arrays, in_file, file.path()), file.rows()));
      }
    }
  }

  /// The evaluated run may have numbered the classes in another way than this training.
  void number_classes(const Config& params, const EvalFile& file, const Chosen& chosen) {
    const auto stored = stored_class_names(file);
    OrderedMap<std::vector<std::string>> names;
    for (const auto& [key, in_file] : chosen) {
      const EvalArray& array = file.array(in_file);
      const bool is_whole = c10::isIntegralType(array.dtype, /*includeBool=*/false);
      if (!is_whole || array.kind != EvalKind::kTensor) continue;
      whole_keys_.push_back(key);
      if (const auto* found = stored.find(short_key(in_file))) names.set(key, *found);
    }
    classes_ = ClassRenumberings(params, names, file.path());
  }

  /// Finds errors here that would otherwise appear only at the first batch.
  void check_joined(const Config& params, const EvalFile& file, const Chosen& chosen) {
    for (size_t row = 0; row < index_.size(); ++row) {
      if (index_[row] >= 0 && index_[row] < source_->size()) continue;
      throw params.error("dataset",
                         fmt::format("{}: row {} is example {} of its dataset; this one has {}",
                                     file.path(), row, index_[row], source_->size()));
    }
    Random random(0);
    const Example first = source_->get(index_[0], random);
    const auto is_in_both = [&](const std::string& key) {
      return first.tensors.contains(key) || first.texts.contains(key);
    };
    for (const auto& [key, in_file] : chosen) {
      const bool is_ragged = file.array(in_file).kind == EvalKind::kRagged;
      if (!is_in_both(key) && !(is_ragged && is_in_both(key + ArrayTable::kLengths))) continue;
      throw params.error("dataset",
                         fmt::format("\"{}\" is in the dataset and in {}; read the outputs under "
                                     "another key: keys: {{output_{}: {}}}",
                                     key, file.path(), short_key(in_file), in_file));
    }
  }

  std::vector<int64_t> index_;
  ArrayTable table_;
  ClassRenumberings classes_;
  std::vector<std::string> whole_keys_;  ///< The keys of tensors of whole numbers.
  std::unique_ptr<Dataset> source_;
};

STEPOP_REGISTER(
    datasets(), "EvalOutputs",
    [](const Config& params) { return make_component<EvalOutputsDataset>(params); },
    about_class<EvalOutputsDataset>(
        {"The outputs of an evaluation, alone or joined with the dataset that they came from."}));

}  // namespace
}  // namespace stepop
