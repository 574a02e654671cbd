#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// The dataset that a config in YAML describes: dataset_of("{class: Idx, images: a, labels: b}").
/// Errors place it at `test.yaml:1: data`.
inline std::unique_ptr<Dataset> dataset_of(const std::string& yaml) {
  return datasets().build(Config(parse_yaml("data: " + yaml, {"test.yaml", 0})), "data");
}

/// What is read and misspelt in the config of a dataset that is built.
inline std::string unknown_keys_of(const std::string& yaml) {
  const Config config(parse_yaml("data: " + yaml, {"test.yaml", 0}));
  datasets().build(config, "data");
  return config.unknown_keys();
}

inline Example example_of(const Dataset& dataset, int64_t index) {
  Random random(0);
  return dataset.get(index, random);
}

inline Batch batch_of(const Dataset& dataset, const std::vector<int64_t>& indices) {
  std::vector<Random> randoms(indices.size(), Random(0));
  return load_batch(dataset, indices, randoms);
}

}  // namespace stepop
