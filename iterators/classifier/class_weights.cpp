#include "iterators/classifier/class_weights.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "iterators/losses/class_targets.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/dataset.h"

namespace stepop {
namespace {

constexpr const char* kKey = "class_weights";
constexpr const char* kBalanced = "balanced";
constexpr const char* kTrain = "train";

/// Adds the classes of one or of all examples, integers of any shape; or soft labels [C, ...].
void add_classes(const at::Tensor& target, int64_t ignore, const std::string& key,
                 std::vector<double>& counts) {
  const auto classes = static_cast<int64_t>(counts.size());
  if (target.is_floating_point() && target.dim() > 0 && target.size(0) == classes) {
    const at::Tensor shares = target.to(at::kDouble).flatten(1).sum(1).contiguous();
    for (int64_t i = 0; i < classes; ++i) {
      counts[static_cast<size_t>(i)] += shares.const_data_ptr<double>()[i];
    }
    return;
  }
  if (!at::isIntegralType(target.scalar_type(), /*includeBool=*/false)) {
    throw Error(
        fmt::format("\"{}\" is {}; classes are whole numbers", key, describe_tensor(target)));
  }
  const at::Tensor numbers = target.to(at::kLong).contiguous();
  const auto* values = numbers.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (values[i] == ignore || values[i] == kLeftOutLabel) continue;
    if (values[i] < 0 || values[i] >= classes) {
      throw Error(
          fmt::format("\"{}\" has the class {}; the network has {} outputs, classes 0 to {}", key,
                      values[i], classes, classes - 1));
    }
    counts[static_cast<size_t>(values[i])] += 1;
  }
}

}  // namespace

ClassWeights::ClassWeights(const Context& context, std::string target, int64_t ignore)
    : context_(context), target_(std::move(target)), ignore_(ignore) {
  const Config& config = context.config;
  if (!config.has(kKey)) return;
  if (config.peek(kKey)->is_text()) {
    is_balanced_ = config.get<std::string>(kKey) == kBalanced;
  } else if (config.peek(kKey)->is_list()) {
    const auto weights = config.get<std::vector<double>>(kKey);
    double sum = 0;
    for (const double weight : weights) {
      if (!std::isfinite(weight) || weight < 0) {
        throw config.error(kKey, fmt::format("expected numbers of 0 or more, found {}", weight));
      }
      sum += weight;
    }
    if (!(sum > 0)) throw config.error(kKey, "expected a weight above 0");
    weights_ = at::tensor(weights, at::kDouble);
    return;
  }
  if (!is_balanced_) {
    throw config.error(kKey, "expected balanced, or a list with a weight for each class, found " +
                                 config.peek(kKey)->describe());
  }
  // Tracked as the state of a hook is: a resume may have other weights.
  const Tracker::Prefix prefix(context.tracker, std::string(kHooksPrefix));
  context.track(
      kKey,
      [this] {
        return weights_.defined() ? State{{"weights", weights_}} : State();
      },
      [this](const State& state) {
        const auto found = state.find("weights");
        if (found == state.end()) return;
        weights_ = found->second.cpu();
        used_.reset();
      });
}

const at::Tensor& ClassWeights::of(const at::Tensor& logits) {
  if (!is_balanced_ && !weights_.defined()) return used_;
  const int64_t classes = logits.size(1);
  if (!weights_.defined()) weights_ = balanced(classes);
  if (weights_.size(0) != classes) {
    throw context_.config.error(
        kKey, fmt::format("expected a weight for each of the network's {} outputs, found {}",
                          classes, weights_.size(0)));
  }
  const auto type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  if (!used_.defined() || used_.device() != logits.device() || used_.scalar_type() != type) {
    used_ = weights_.to(logits.device(), type);
  }
  return used_;
}

at::Tensor ClassWeights::balanced(int64_t classes) const {
  std::vector<double> counts(static_cast<size_t>(classes), 0);
  const at::Tensor labels = context_.dataset(kTrain).labels(target_);
  if (labels.defined()) {
    add_classes(labels.is_floating_point() ? labels.movedim(1, 0) : labels, ignore_, target_,
                counts);
  } else {
    count_examples(counts);
  }
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] <= 0) {
      throw context_.config.error(
          kKey, fmt::format("balanced: no example of datasets/train has the class {} of the "
                            "network's {} outputs; a list of weights can give it one",
                            i, classes));
    }
    counts[i] = all / (static_cast<double>(classes) * counts[i]);
  }
  return at::tensor(counts, at::kDouble);
}

void ClassWeights::count_examples(std::vector<double>& counts) const {
  const Dataset& data = context_.dataset(kTrain);
  const int64_t size = data.size();
  context_.log.info(
      fmt::format("class_weights: balanced reads the {} of datasets/train once, to count the "
                  "classes of \"{}\"",
                  counted(size, "example"), target_));
  for (int64_t i = 0; i < size; ++i) {
    Random random(mix_seed({context_.seed, seed_of(kKey), static_cast<uint64_t>(i)}));
    const Example example = data.get(i, random);
    const at::Tensor* target = example.tensors.find(target_);
    if (target == nullptr) {
      throw Error(
          fmt::format("class_weights: balanced: the example {} of datasets/train has no "
                      "\"{}\"; there are: {}",
                      i, target_, example.tensors.key_list()));
    }
    try {
      add_classes(*target, ignore_, target_, counts);
    } catch (const Error& error) {
      throw Error(fmt::format("class_weights: balanced: example {} of datasets/train: {}", i,
                              error.what()));
    }
  }
}

}  // namespace stepop
