#include "runtime/cli/compare_states.h"

#include <ATen/ops/abs.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/measure/tensor_statistics.h"

namespace stepop {
namespace {

/// The newest step that both have.
std::optional<int64_t> common_step(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  for (auto step = a.rbegin(); step != a.rend(); ++step) {
    if (std::binary_search(b.begin(), b.end(), *step)) return *step;
  }
  return std::nullopt;
}

bool have_same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  return a.nbytes() == 0 ||
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), static_cast<size_t>(a.nbytes())) == 0;
}

/// `model.fc1.weight by at most 0.25`, or what the tensors are.
std::string difference_text(const std::string& name, const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
    return fmt::format("{}: {} and {}", name, describe_tensor(a), describe_tensor(b));
  }
  const double most = a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
  return fmt::format("{} by at most {}", name, short_number(most));
}

std::string describe(const State& a, const State& b) {
  size_t different = 0;
  size_t missing = 0;
  std::string first;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end()) {
      ++missing;
    } else if (!have_same_bits(tensor, other->second)) {
      if (different++ == 0) first = difference_text(name, tensor, other->second);
    }
  }
  const size_t extra = b.size() - (a.size() - missing);
  if (different + missing + extra == 0) {
    return fmt::format("the same bits in all {} tensors, weights and everything else", a.size());
  }
  std::string text;
  if (different > 0) {
    text = fmt::format("{} of {} tensors differ, first {}", different, a.size() - missing, first);
  }
  if (missing + extra > 0) {
    text += fmt::format("{}{} tensors are in one alone", text.empty() ? "" : "; ", missing + extra);
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
    if (!step) return runs + ": no step of which both have a checkpoint";
    const Checkpoint checkpoint_a = load_checkpoint(folder_a.path_of(*step));
    const Checkpoint checkpoint_b = load_checkpoint(folder_b.path_of(*step));
    return fmt::format("{} at step {}: {}", runs, with_thousands(*step),
                       describe(checkpoint_a.tensors, checkpoint_b.tensors));
  } catch (const Error& error) {
    return fmt::format("{}: {}", runs, error.what());
  }
}

}  // namespace stepop
