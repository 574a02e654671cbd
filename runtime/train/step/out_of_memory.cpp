#include "runtime/train/step/out_of_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/device_memory.h"
#include "runtime/core/measure/resident_memory.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/networks.h"

namespace stepop {
namespace {

constexpr size_t kMostNamed = 4;

/// The tensors that have a name in this process.
class Tensors {
 public:
  /// Returns the tensor's bytes; 0 for a tensor that was already added.
  double add(const std::string& prefix, const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined() || !known_.insert(tensor.unsafeGetTensorImpl()).second) return 0;
    const auto bytes = static_cast<double>(tensor.nbytes());
    largest_.emplace_back(
        bytes, fmt::format("{}{} {}, {}", prefix, name, describe_tensor(tensor), size_text(bytes)));
    return bytes;
  }

  std::string largest() {
    std::ranges::stable_sort(largest_, std::greater<>(),
                             [](const auto& each) { return each.first; });
    std::vector<std::string> texts;
    for (size_t i = 0; i < std::min(largest_.size(), kMostNamed); ++i) {
      texts.push_back(largest_[i].second);
    }
    return fmt::format("{}", fmt::join(texts, "; "));
  }

 private:
  std::set<const void*> known_;
  std::vector<std::pair<double, std::string>> largest_;
};

/// What this process has of the memory in which tensors lie; of a GPU the most that it had at once,
/// as tensors of the op that failed are gone by now.
std::string in_all(const c10::Device& device) {
  if (const auto memory = device_memory(device)) {
    return fmt::format("; all tensors at most {} at once", size_text(memory->most_in_tensors));
  }
  const double bytes = device.is_cpu() ? resident_bytes() : 0;
  return bytes > 0 ? fmt::format("; this process {} in all", size_text(bytes)) : "";
}

/// The argument with which the training continues by itself, unless it is given.
std::string splitting(const Context& context) {
  const Value* given = context.config.root().peek("on_out_of_memory");
  if (context.world_size > 1 || (given != nullptr && *given == Value("split"))) return "";
  return "--on_out_of_memory split, which halves batches by itself; ";
}

/// The arguments that train the same, with half of the memory for what the forward pass keeps.
std::string half_batches(const Context& context) {
  const Value* batch_size = context.config.root().peek("batch_size");
  const bool is_number = batch_size != nullptr && batch_size->is_int();
  if (!is_number || batch_size->as_int() < 2) return "";
  const int64_t accumulate = context.clock.micro_batches;
  return fmt::format("--batch_size {} --accumulate {}, which trains the same; ",
                     batch_size->as_int() / 2, 2 * accumulate);
}

}  // namespace

/// Recognises the messages of LibTorch's allocators, of C++, and of CUDA's libraries.
bool is_out_of_memory(const std::string& message) {
  const auto has = [&](const char* words) { return message.find(words) != std::string::npos; };
  return has("can't allocate memory") || has("not enough memory") || has("out of memory") ||
         has("std::bad_alloc") || has("STATUS_ALLOC_FAILED") || has("ALLOCATION_FAILED");
}

std::string out_of_memory_text(const std::string& message, const Context& context,
                               const std::string& split, const Batch& batch) {
  if (!is_out_of_memory(message)) return {};
  Tensors tensors;
  double weights = 0;
  double gradients = 0;
  for (const auto& name : context.networks.names()) {
    for (const auto& [key, tensor] : context.networks.tensors(name)) {
      weights += tensors.add(name + ".", key, tensor);
      if (tensor.defined() && tensor.grad().defined()) {
        gradients += tensors.add("gradient of " + name + ".", key, tensor.grad());
      }
    }
  }
  double examples = 0;
  for (const auto& [key, tensor] : batch.tensors()) examples += tensors.add("batch ", key, tensor);
  std::string text = fmt::format(
      "\nno memory is left: networks have {}, gradients {}, the batch of {} {}", size_text(weights),
      size_text(gradients), counted(batch.indices().size(), "example"), size_text(examples));
  text += in_all(context.device);
  text += ". Most of the rest is what the forward pass keeps for the backward pass";
  if (const std::string largest = tensors.largest(); !largest.empty()) {
    text += "\nlargest tensors: " + largest;
  }
  text += "\nwhat would help: ";
  text +=
      split == "train" ? splitting(context) + half_batches(context) : "a smaller test_batch_size; ";
  if (split == "train" && checkpointing::has_calls() &&
      context.networks.checkpoint_modules().empty()) {
    text +=
        "checkpoint_modules: [.], which keeps less of the forward pass and takes a third longer; ";
  }
  if (context.precision == Precision::kFloat32) text += "--precision bfloat16; ";
  return text + "`stepop tune -b ... --batch_size` measures which sizes fit";
}

}  // namespace stepop
