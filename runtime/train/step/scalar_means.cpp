#include "runtime/train/step/scalar_means.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr std::string_view kTotal = ".total";
constexpr std::string_view kCount = ".count";
constexpr std::string_view kWeight = ".weight";

}  // namespace

namespace {

/// Adds a number of any type to a float64 sum. A restored sum is on the CPU.
void add_to(at::Tensor& sum, const at::Tensor& number) {
  if (sum.defined()) {
    sum = sum.to(number.device()) + number;
  } else {
    // Copied, because the caller may change the tensor later.
    sum = number.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  }
}

}  // namespace

void ScalarMeans::Sum::add(const at::Tensor& number, const at::Tensor& of_weight) {
  add_to(total, number);
  if (of_weight.defined()) add_to(weight, of_weight);
}

void ScalarMeans::add(const std::string& op, const Scalars& scalars, Share share) {
  for (const auto& [key, value] : scalars) {
    const at::Tensor* tensor = value.tensor();
    const std::string full = op + "/" + key;
    const bool is_good_tensor =
        tensor != nullptr && tensor->defined() && tensor->numel() == 1 && !tensor->is_complex();
    at::Tensor number = is_good_tensor
                            ? tensor->detach().reshape({})
                            : at::scalar_tensor(value.read(full), at::kDouble);  // may throw
    const bool is_new = !sums_.contains(full);
    Sum& sum = sums_[full];
    at::Tensor weight;
    if (const WeightedMean* mean = value.weighted()) {
      weight = mean->weight().reshape({}).to(number.device(), at::kDouble);
      if (share.own == 0) weight = at::zeros_like(weight);
      number = (number.to(at::kDouble) * weight).masked_fill(weight == 0, 0);
    } else {
      // A scalar with no share may be NaN.
      if (share.own == 0) number = at::zeros_like(number);
      if (share.own != 1) number = number.to(at::kDouble) * share.own;
    }
    if (!is_new && weight.defined() != sum.weight.defined()) {
      throw Error(fmt::format("{} has a weight in some batches and none in others", full));
    }
    sum.add(number, weight);
    sum.count += share.all;
  }
}

OrderedMap<Logs> ScalarMeans::take() {
  OrderedMap<Logs> logs;
  for (const auto& [key, sum] : sums_) {
    const size_t slash = key.rfind('/');
    Scalars& scalars = logs[key.substr(0, slash)].scalars;
    if (sum.weight.defined()) {
      const at::Tensor divisor = sum.weight.masked_fill(sum.weight == 0, 1);
      scalars.set(key.substr(slash + 1), WeightedMean(sum.total / divisor, sum.weight));
    } else {
      scalars.set(key.substr(slash + 1), sum.total / sum.count);
    }
  }
  sums_.clear();
  return logs;
}

void ScalarMeans::clear_totals() {
  for (auto& [key, sum] : sums_) {
    sum.total = at::zeros_like(sum.total);
    if (sum.weight.defined()) sum.weight = at::zeros_like(sum.weight);
  }
}

State ScalarMeans::save() const {
  State state;
  int number = 0;
  for (const auto& [key, sum] : sums_) {
    // The number keeps the order; a state is sorted by name.
    const std::string name = fmt::format("{:03}/{}", number++, key);
    state.emplace(name + std::string(kTotal), sum.total);
    // Within a step, a count has parts.
    const bool is_whole = sum.count == std::floor(sum.count);
    state.emplace(name + std::string(kCount),
                  at::scalar_tensor(sum.count, is_whole ? at::kLong : at::kDouble));
    if (sum.weight.defined()) state.emplace(name + std::string(kWeight), sum.weight);
  }
  return state;
}

void ScalarMeans::load(const State& state) {
  sums_.clear();
  add_other(state);
}

void ScalarMeans::add_other(const State& state) {
  std::map<int64_t, std::pair<std::string, Sum>> by_number;
  for (const auto& [name, total] : state) {
    if (!name.ends_with(kTotal)) continue;
    const std::string stem = name.substr(0, name.size() - kTotal.size());
    const size_t slash = stem.find('/');
    int64_t number = -1;
    const char* end = stem.data() + std::min(slash, stem.size());
    if (std::from_chars(stem.data(), end, number).ptr != end || slash == std::string::npos)
      continue;
    const auto count = state.find(stem + std::string(kCount));
    if (count == state.end() || count->second.numel() != 1 || total.numel() != 1) {
      throw Error(fmt::format("{}{}: missing from the checkpoint", stem, kCount));
    }
    const auto weight = state.find(stem + std::string(kWeight));
    // In older checkpoints, totals have the scalar's own type and shape.
    by_number[number] = {stem.substr(slash + 1),
                         {total.to(at::kDouble).reshape({}), count->second.item<double>(),
                          weight == state.end() ? at::Tensor() : weight->second.clone()}};
  }
  for (const auto& [number, named] : by_number) {
    Sum& sum = sums_[named.first];
    sum.add(named.second.total, named.second.weight);
    sum.count = named.second.count;
  }
}

}  // namespace stepop
