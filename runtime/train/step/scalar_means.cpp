#include "runtime/train/step/scalar_means.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr std::string_view kTotal = ".total";
constexpr std::string_view kCount = ".count";

}  // namespace

void ScalarMeans::add(const std::string& op, const Scalars& scalars, double share) {
  for (const auto& [key, value] : scalars) {
    const at::Tensor* tensor = value.tensor();
    const std::string full = op + "/" + key;
    const bool is_good_tensor =
        tensor != nullptr && tensor->defined() && tensor->numel() == 1 && !tensor->is_complex();
    at::Tensor number = is_good_tensor
                            ? tensor->detach().reshape({})
                            : at::scalar_tensor(value.read(full), at::kDouble);  // may throw
    // A scalar with no share may be NaN.
    if (share == 0) number = at::zeros_like(number);
    if (share != 1) number = number.to(at::kDouble) * share;
    Sum& sum = sums_[full];
    if (sum.total.defined()) {
      // A restored total is on the CPU. A double plus a number of any type is a double.
      sum.total = sum.total.to(number.device()) + number;
    } else {
      // Copied, because the caller may change the tensor later.
      sum.total = number.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    }
    ++sum.count;
  }
}

OrderedMap<Logs> ScalarMeans::take() {
  OrderedMap<Logs> logs;
  for (const auto& [key, sum] : sums_) {
    const size_t slash = key.rfind('/');
    logs[key.substr(0, slash)].scalars.set(key.substr(slash + 1), sum.total / sum.count);
  }
  sums_.clear();
  return logs;
}

void ScalarMeans::clear_totals() {
  for (auto& [key, sum] : sums_) sum.total = at::zeros_like(sum.total);
}

State ScalarMeans::save() const {
  State state;
  int number = 0;
  for (const auto& [key, sum] : sums_) {
    // The number keeps the order; a state is sorted by name.
    const std::string name = fmt::format("{:03}/{}", number++, key);
    state.emplace(name + std::string(kTotal), sum.total);
    state.emplace(name + std::string(kCount), at::scalar_tensor(sum.count, at::kLong));
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
    // In older checkpoints, totals have the scalar's own type and shape.
    by_number[number] = {stem.substr(slash + 1),
                         {total.to(at::kDouble).reshape({}), count->second.item<int64_t>()}};
  }
  for (const auto& [number, named] : by_number) {
    Sum& sum = sums_[named.first];
    sum.total = sum.total.defined() ? sum.total + named.second.total : named.second.total;
    sum.count = named.second.count;
  }
}

}  // namespace stepop
