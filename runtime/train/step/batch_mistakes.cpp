#include "runtime/train/step/batch_mistakes.h"

#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>

#include <charconv>
#include <exception>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

bool is_integer(const at::Tensor& tensor) {
  return c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) && tensor.numel() > 0;
}

/// `of the example 57 of datasets/train`: the example whose row holds the element `flat` of
/// `tensor`.
std::string example_text(const Batch& batch, const std::string& split, const at::Tensor& tensor,
                         int64_t flat) {
  const int64_t row = tensor.dim() == 0 ? 0 : flat / (tensor.numel() / tensor.size(0));
  if (row >= batch.size() || tensor.dim() == 0 || tensor.size(0) != batch.size()) {
    return fmt::format("of the batch of datasets/{}", split);
  }
  return fmt::format("of the example {} of datasets/{}", batch.indices()[static_cast<size_t>(row)],
                     split);
}

/// Lists the batch's tensors that are `wanted`, one per line; all tensors when none is.
template <class Wanted>
std::string tensors_text(const Batch& batch, const Wanted& wanted, const std::string& remedy,
                         const char* of = "labels") {
  std::string found;
  std::string all;
  for (const auto& [key, tensor] : batch.tensors()) {
    const std::string text = fmt::format("\"{}\" is {}", key, describe_tensor(tensor));
    all += (all.empty() ? "\nthe batch: " : ", ") + text;
    if (wanted(tensor)) found += fmt::format("\n{}: {}", text, remedy);
  }
  return found.empty() ? fmt::format("{}; {}: {}", all, of, remedy) : found;
}

/// One number per example, maybe with one dimension too many.
bool is_like_labels(const at::Tensor& tensor) {
  return tensor.dim() == 1 || (tensor.dim() == 2 && tensor.size(1) == 1);
}

/// For `Target 12 is out of bounds.`
std::string wrong_class(int64_t value, const std::string& split, const Batch& batch) {
  std::string text;
  for (const auto& [key, tensor] : batch.tensors()) {
    if (!is_integer(tensor)) continue;
    const at::Tensor hits = tensor.eq(value).flatten();
    if (!hits.any().item<bool>()) continue;
    text += fmt::format(
        "\n\"{}\" {} is {}", key,
        example_text(batch, split, tensor, hits.to(at::kByte).argmax().item<int64_t>()), value);
  }
  return text +
         "\nclasses count from 0 and are below the number of logits: a network with one more "
         "output, or other labels";
}

/// For `index out of range in self`, thrown by an embedding.
std::string wrong_index(const Networks& networks, const std::string& split, const Batch& batch) {
  std::string embeddings;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& name : networks.names()) {
    for (const auto& item : networks.get(name)->named_modules(name)) {
      const auto* embedding = item.value()->as<torch::nn::Embedding>();
      if (embedding == nullptr || !embedding->weight.defined()) continue;
      const int64_t rows = embedding->weight.size(0);
      fewest = std::min(fewest, rows);
      embeddings += fmt::format("{}{} takes 0 to {}", embeddings.empty() ? "\nembeddings: " : ", ",
                                item.key(), rows - 1);
    }
  }
  std::string text;
  for (const auto& [key, tensor] : batch.tensors()) {
    if (!is_integer(tensor)) continue;
    const at::Tensor flat = tensor.flatten();
    const int64_t most = flat.max().item<int64_t>();
    const int64_t least = flat.min().item<int64_t>();
    if (most < fewest && least >= 0 && !embeddings.empty()) continue;
    const at::Tensor place = least < 0 ? flat.argmin() : flat.argmax();
    text += fmt::format("\n\"{}\" {} has {}; the batch has {} to {} there", key,
                        example_text(batch, split, tensor, place.item<int64_t>()),
                        least < 0 ? least : most, least, most);
  }
  return text + embeddings;
}

std::optional<int64_t> number_after(const std::string& message, const std::string& words) {
  const size_t begin = message.find(words);
  if (begin == std::string::npos) return std::nullopt;
  const char* first = message.data() + begin + words.size();
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(first, message.data() + message.size(), number);
  if (failed != std::errc()) return std::nullopt;
  return number;
}

/// The type that LibTorch found beside float32 where both had to be the same: `mat1 and mat2 must
/// have the same dtype, but got Double and Float`.
std::optional<at::ScalarType> unwanted_type(const std::string& message) {
  const auto has = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (!has("the same dtype") && !has("should be the same") && !has("Found dtype") &&
      !has("expected scalar type")) {
    return std::nullopt;
  }
  if (!has("Float") && !has("float")) return std::nullopt;
  if (has("Double") || has("double")) return at::kDouble;
  if (has("Byte") || has("unsigned char")) return at::kByte;
  if (has("Long") || has("long int") || has("int64")) return at::kLong;
  return std::nullopt;
}

std::string text_of(const std::string& message, const Networks& networks, const std::string& split,
                    const Batch& batch) {
  const auto has = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (has("is out of bounds.")) {
    const auto value = number_after(message, "Target ");
    return value ? wrong_class(*value, split, batch) : "";
  }
  if (has("expected target dtype to be Long") || has("expected scalar type Long")) {
    return tensors_text(
        batch,
        [](const at::Tensor& tensor) {
          return is_like_labels(tensor) && tensor.scalar_type() != at::kLong;
        },
        "classes are int64 [B], as .to(at::kLong) makes them");
  }
  if (has("multi-target not supported")) {
    return tensors_text(
        batch, [](const at::Tensor& tensor) { return is_like_labels(tensor) && tensor.dim() == 2; },
        "classes are int64 [B], as .squeeze(1) makes them");
  }
  if (const auto type = unwanted_type(message)) {
    return tensors_text(
        batch, [&](const at::Tensor& tensor) { return tensor.scalar_type() == *type; },
        "networks compute with float32, as .to(torch::kFloat) in the dataset's get makes it",
        "numbers");
  }
  if (has("Expected more than 1 value per channel")) {
    return fmt::format(
        "\nthe batch has {}, which gives batch normalization one number for each channel: a "
        "variance takes two. Another batch_size gives more; drop_last: true leaves out a smaller "
        "last batch of an epoch",
        counted(batch.size(), "example"));
  }
  if (has("index out of range in self")) return wrong_index(networks, split, batch);
  if (has("device-side assert")) {
    return "\nmost often a label or an index is out of range: --device cpu says which";
  }
  return {};
}

}  // namespace

std::string integers_text(const Batch& batch) {
  std::string text;
  for (const auto& [key, tensor] : batch.tensors()) {
    if (!is_integer(tensor)) continue;
    text += fmt::format("{}\"{}\" from {} to {}", text.empty() ? "\nthe batch: " : ", ", key,
                        tensor.min().item<int64_t>(), tensor.max().item<int64_t>());
  }
  return text;
}

std::string batch_mistake_text(const std::string& message, const Networks& networks,
                               const std::string& split, const Batch& batch) {
  try {
    return text_of(message, networks, split, batch);
  } catch (const std::exception&) {
    return {};  // the batch cannot be read, so the message stays alone
  }
}

}  // namespace stepop
