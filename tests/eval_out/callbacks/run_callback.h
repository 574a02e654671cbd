#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/callbacks/callback.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {

/// A dataset that holds tensors [N, ...]: those of `labels` at once, all by example.
class TensorData : public Dataset {
 public:
  explicit TensorData(std::map<std::string, at::Tensor> examples = {},
                      std::map<std::string, at::Tensor> labels = {})
      : examples_(std::move(examples)), labels_(std::move(labels)) {}

  int64_t size() const override {
    return examples_.empty() ? 0 : examples_.begin()->second.size(0);
  }
  Example get(int64_t index, Random&) const override {
    Example example;
    for (const auto& [key, all] : examples_) example.tensors.set(key, all[index]);
    return example;
  }
  at::Tensor labels(std::string_view key) const override {
    const auto found = labels_.find(std::string(key));
    return found == labels_.end() ? at::Tensor() : found->second;
  }

 private:
  std::map<std::string, at::Tensor> examples_;
  std::map<std::string, at::Tensor> labels_;
};

/// What a callback left.
struct Looked {
  ScratchFolder folder;
  Logs logs;

  double value(const std::string& name) const { return logs.scalars.at(name).read(name); }
  std::string text(const std::string& file) const { return read_bytes(folder.path(file)); }
};

/// Runs a callback with its parameters as YAML over a file with these outputs, of the dataset's
/// examples 0, 1, ... or `indices`. In messages the file's path is FILE.
inline std::unique_ptr<Looked> look(const std::string& callback, const EvalOutputs& outputs,
                                    const char* params = "{}",
                                    const TensorData& data = TensorData(),
                                    std::vector<int64_t> indices = {}) {
  auto looked = std::make_unique<Looked>();
  const std::string path = looked->folder.path("outputs.h5");
  if (indices.empty()) {
    size_t rows = 0;
    if (outputs.outputs.empty()) {
      rows = static_cast<size_t>(outputs.labels.begin()->second.value().size(0));
    } else if (const auto* tensor = std::get_if<at::Tensor>(&outputs.outputs.begin()->second)) {
      rows = static_cast<size_t>(tensor->size(0));
    } else {
      rows = std::get<std::vector<std::string>>(outputs.outputs.begin()->second).size();
    }
    indices.resize(rows);
    std::iota(indices.begin(), indices.end(), 0);
  }
  EvalWriter writer(path, static_cast<int64_t>(indices.size()));
  writer.write(outputs, indices);
  writer.finish();
  const EvalFile file(path);
  const Config config(parse_yaml(params, {"test.yaml", 0}));
  const std::string root = looked->folder.path();
  try {
    looked->logs = callbacks().factory(callback, config, "")({root, data, file, config, config});
  } catch (const Error& error) {
    std::string message = error.what();
    for (size_t at = 0; (at = message.find(path)) != std::string::npos;) {
      message.replace(at, path.size(), "FILE");
    }
    throw Error(message);
  }
  return looked;
}

/// Inputs and what scikit-learn and scikit-image say of them; see make_expected.py.
inline const nlohmann::json& expected() {
  static const auto kAll = nlohmann::json::parse(
      read_bytes(STEPOP_SOURCE_DIR "/tests/eval_out/callbacks/expected.json"));
  return kAll;
}

/// A list of numbers, or of lists of numbers, as a float64 tensor.
inline at::Tensor doubles(const nlohmann::json& json) {
  std::vector<double> flat;
  std::vector<int64_t> shape{static_cast<int64_t>(json.size())};
  if (json[0].is_array()) shape.push_back(static_cast<int64_t>(json[0].size()));
  for (const auto& row : json) {
    if (row.is_array()) {
      for (const auto& value : row) flat.push_back(value.get<double>());
    } else {
      flat.push_back(row.get<double>());
    }
  }
  return at::tensor(flat, at::kDouble).view(shape);
}

}  // namespace stepop
