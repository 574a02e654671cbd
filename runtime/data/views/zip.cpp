#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/data/views/key_parts.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// The examples of datasets of equal length, side by side, each dataset's keys under a prefix.
class Zip : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    std::vector<Source> sources;
    std::vector<std::string> names;

    void declare(Parameters& p) {
      const Config* config = p.describe_required(
          "datasets", "map",
          "prefix -> dataset, {left: {class: Idx, ...}, right: {...}}: examples hold "
          "left/image, right/image, ...");
      if (config == nullptr) return;
      config->has("datasets");
      names = config->at("datasets").keys();
      for (const auto& name : names) sources.emplace_back(*config, "datasets/" + name);
      if (!names.empty()) return;
      throw config->error("datasets",
                          "expected a map of prefixes and datasets, such as {left: {class: Idx, "
                          "...}, right: {class: Csv, ...}}");
    }
  };

  Zip(Params params, const Config& config) : sources_(std::move(params.sources)) {
    for (const auto& name : params.names) prefixes_.push_back(name + "/");
    for (const Source& source : sources_) {
      if (source.size() == sources_[0].size()) continue;
      throw config.error(
          "datasets", fmt::format("they have different numbers of examples: {} {}, {} {}; a Subset "
                                  "makes the longer one shorter",
                                  sources_[0].place(), with_thousands(sources_[0].size()),
                                  source.place(), with_thousands(source.size())));
    }
  }

  int64_t size() const override { return sources_[0].size(); }

  Example get(int64_t index, Random& random) const override {
    Example example;
    for (size_t i = 0; i < sources_.size(); ++i) {
      Random own = split_off(random);
      add_part(example, prefixes_[i], sources_[i].get(index, own));
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    Batch batch({}, {}, {indices.begin(), indices.end()});
    std::vector<Random> own(randoms.size(), Random(0));
    for (size_t i = 0; i < sources_.size(); ++i) {
      std::transform(randoms.begin(), randoms.end(), own.begin(), split_off);
      add_part(batch, prefixes_[i], sources_[i].load(indices, own, indices));
    }
    return batch;
  }

  at::Tensor labels(std::string_view key) const override {
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (key.starts_with(prefixes_[i])) {
        return sources_[i].labels(key.substr(prefixes_[i].size()));
      }
    }
    return {};
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (size_t i = 0; i < sources_.size(); ++i) {
      for (const auto& key : sources_[i]->label_keys()) keys.push_back(prefixes_[i] + key);
    }
    return keys;
  }

  std::string notice() const override { return notices_of(sources_); }

  bool keep_float64(std::string_view key) override {
    bool is_kept = false;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (!key.starts_with(prefixes_[i])) continue;
      is_kept = sources_[i].keep_float64(key.substr(prefixes_[i].size())) || is_kept;
    }
    return is_kept;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    Batch batch({}, {}, indices);
    for (size_t i = 0; i < sources_.size(); ++i) {
      std::vector<Example> parts;
      for (const Example& example : examples) parts.push_back(part_below(example, prefixes_[i]));
      add_part(batch, prefixes_[i], sources_[i]->collate(parts, indices));
    }
    // The keys that a view around this one has added.
    std::vector<Example> rest = examples;
    for (Example& example : rest) {
      const auto is_own = [&](const auto& entry) {
        return std::any_of(prefixes_.begin(), prefixes_.end(),
                           [&](const auto& prefix) { return entry.first.starts_with(prefix); });
      };
      example.tensors.erase_if(is_own);
      example.texts.erase_if(is_own);
    }
    add_part(batch, "", stepop::collate(rest, std::move(indices)));
    return batch;
  }

 private:
  std::vector<Source> sources_;
  std::vector<std::string> prefixes_;  ///< The prefixes with the slash: `left/`.
};

STEPOP_REGISTER_DATASET(Zip,
                        {"The examples of several datasets side by side, each under a prefix."});

}  // namespace
}  // namespace stepop
