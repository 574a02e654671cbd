#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "runtime/config/config.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// The dataset that was evaluated, for callbacks that run afterwards: the component at `path` of
/// the config, built when it is first asked for anything. When it cannot be built - its files
/// moved, it is not in this program - every function throws Error that says so.
class StoredDataset : public Dataset {
 public:
  StoredDataset(Config config, std::string path)
      : config_(std::move(config)), path_(std::move(path)) {}

  int64_t size() const override { return built().size(); }
  Example get(int64_t index, Random& random) const override { return built().get(index, random); }
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    return built().get_batch(indices, randoms);
  }
  at::Tensor labels(std::string_view key) const override { return built().labels(key); }
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return built().collate(examples, std::move(indices));
  }

 private:
  const Dataset& built() const;

  Config config_;
  std::string path_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<Dataset> dataset_;
  mutable std::string problem_;
};

}  // namespace stepop
