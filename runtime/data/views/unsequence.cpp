#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/example_random.h"
#include "runtime/data/views/sequence.h"

namespace stepop {
namespace {

/// The frames of a dataset of sequences one by one: example i is frame i mod T of sequence i / T.
class UnSequence : public Dataset {
 public:
  struct Params {
    Source dataset;
    std::optional<int64_t> length;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "a Sequence, or a view of one");
      p.add("length", length, "frames in a sequence; none: as many as the first one has",
            at_least(1));
    }
  };

  UnSequence(Params params, const Config& config)
      : source_(std::move(params.dataset)), sequence_(dynamic_cast<const Sequence*>(&*source_)) {
    length_ = sequence_ != nullptr ? sequence_->length()
              : params.length      ? *params.length
                                   : length_of_first(config);
    if (params.length.value_or(length_) == length_) return;
    throw config.error("length", fmt::format("{} has sequences of {}", source_.place(), length_));
  }

  int64_t size() const override { return source_.size() * length_; }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    if (sequence_ != nullptr) return sequence_->frame(index / length_, index % length_, random);
    return frame_of(source_.get(index / length_, random), index % length_);
  }

  at::Tensor labels(std::string_view key) const override {
    const at::Tensor labels = source_.labels(key);
    if (!labels.defined() || labels.dim() < 2 || labels.size(1) != length_) return {};
    return labels.flatten(0, 1);
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& key : source_->label_keys()) {
      if (labels(key).defined()) keys.push_back(key);
    }
    return keys;
  }

  std::string notice() const override { return source_->notice(); }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return sequence_ != nullptr ? sequence_->frames().collate(examples, std::move(indices))
                                : stepop::collate(examples, std::move(indices));
  }

 private:
  int64_t length_of_first(const Config& config) const {
    Random random = random_of_fixed_example(0);
    const Example first = source_.get(0, random);
    for (const auto& [key, tensor] : first.tensors) {
      if (tensor.dim() > 0 && tensor.size(0) > 0) return tensor.size(0);
    }
    throw config.error("dataset", "its first example holds no sequence: no tensor [T, ...]");
  }

  Example frame_of(const Example& sequence, int64_t t) const {
    Example frame;
    for (const auto& [key, tensor] : sequence.tensors) {
      if (tensor.dim() == 0 || tensor.size(0) != length_) {
        throw Error(fmt::format("UnSequence: expected {} frames in \"{}\", found {}", length_, key,
                                describe_tensor(tensor)));
      }
      frame.tensors.set(key, tensor.select(0, t));
    }
    const std::string ending = "/" + std::to_string(t);
    for (const auto& [key, text] : sequence.texts) {
      if (key.ends_with(ending)) frame.texts.set(key.substr(0, key.size() - ending.size()), text);
    }
    return frame;
  }

  Source source_;
  const Sequence* sequence_;  ///< The source if it is a Sequence: then single frames are read.
  int64_t length_ = 1;
};

STEPOP_REGISTER_DATASET(UnSequence, {"The frames of sequences one by one."});

}  // namespace
}  // namespace stepop
