#include "runtime/tools/runs/compare_states.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"

namespace stepop {
namespace {

/// The newest common step.
std::optional<int64_t> common_step(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  for (auto step = a.rbegin(); step != a.rend(); ++step) {
    if (std::binary_search(b.begin(), b.end(), *step)) return *step;
  }
  return std::nullopt;
}

bool have_same_shape(const StoredTensor& a, const StoredTensor& b) {
  return a.entry.type == b.entry.type && a.entry.shape == b.entry.shape;
}

/// The largest absolute difference of numbers of the type T; NaN when one of them is.
template <class T>
double largest_difference(const std::string& a, const std::string& b) {
  double largest = 0;
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof(T));
    std::memcpy(&y, b.data() + at, sizeof(T));
    const double difference = std::abs(static_cast<double>(x) - static_cast<double>(y));
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

double largest_difference(c10::ScalarType type, const std::string& a, const std::string& b) {
  switch (type) {
#define STEPOP_CASE(T, name)  \
  case c10::ScalarType::name: \
    return largest_difference<T>(a, b);
    AT_FORALL_SCALAR_TYPES_AND2(Half, BFloat16, STEPOP_CASE)
#undef STEPOP_CASE
    case c10::ScalarType::Bool:  // a file may have any byte there
      return largest_difference<uint8_t>(a, b);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

std::string type_and_shape(const StoredTensor& tensor) {
  return fmt::format("{} [{}]", c10::getDtypeNames(tensor.entry.type).first,
                     fmt::join(tensor.entry.shape, ", "));
}

/// `model.fc1.weight by at most 0.25`, or a description of both tensors.
std::string difference_text(const std::string& name, const StoredTensor& a, const StoredTensor& b) {
  if (!have_same_shape(a, b)) {
    return fmt::format("{}: {} and {}", name, type_and_shape(a), type_and_shape(b));
  }
  return fmt::format("{} by at most {}", name,
                     short_number(largest_difference(a.entry.type, *a.bytes, *b.bytes)));
}

std::string describe(const StoredState& a, const StoredState& b) {
  size_t different = 0;
  size_t missing = 0;
  std::string first;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end()) {
      ++missing;
    } else if (!have_same_shape(tensor, other->second) || *tensor.bytes != *other->second.bytes) {
      if (different++ == 0) first = difference_text(name, tensor, other->second);
    }
  }
  const size_t extra = b.size() - (a.size() - missing);
  if (different + missing + extra == 0) {
    return fmt::format("the same bits in all {}, weights and everything else",
                       counted(a.size(), "tensor"));
  }
  std::string text;
  if (different > 0) {
    text = fmt::format("{} of {} {}, first {}", different, counted(a.size() - missing, "tensor"),
                       different == 1 ? "differs" : "differ", first);
  }
  if (missing + extra > 0) {
    text += fmt::format("{}{} {} in one alone", text.empty() ? "" : "; ",
                        counted(missing + extra, "tensor"), missing + extra == 1 ? "is" : "are");
  }
  return text;
}

}  // namespace

std::string compare_states(const std::string& a, const RunDirectory& run_a, const std::string& b,
                           const RunDirectory& run_b) {
  const std::string runs = fmt::format("state of {} and {}", a, b);
  try {
    const CheckpointFolder folder_a(run_a.checkpoints());
    const CheckpointFolder folder_b(run_b.checkpoints());
    const auto step = common_step(folder_a.steps(), folder_b.steps());
    if (!step) return runs + ": there is no step at which both have a checkpoint";
    return fmt::format("{} at step {}: {}", runs, with_thousands(*step),
                       describe(load_stored_state(folder_a.path_of(*step)),
                                load_stored_state(folder_b.path_of(*step))));
  } catch (const Error& error) {
    return fmt::format("{}: {}", runs, error.what());
  }
}

}  // namespace stepop
