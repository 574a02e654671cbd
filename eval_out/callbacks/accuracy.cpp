#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/index_select.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "eval_out/callback.h"
#include "eval_out/eval_schema.h"
#include "eval_out/hdf5_types.h"

namespace stepop {
namespace {

std::optional<std::string> find_key(const EvalFile& file, const std::string& key) {
  for (const char* group : {"outputs/", "labels/"}) {
    if (file.contains(group + key)) return group + key;
  }
  return std::nullopt;
}

std::string there_are(const EvalFile& file) {
  std::string text;
  for (const auto& key : file.keys()) text += (text.empty() ? "" : ", ") + key;
  return text.empty() ? "none" : text;
}

/// The true classes, int64 [N] for the file's rows, read block by block.
class TrueClasses {
 public:
  TrueClasses(const CallbackArguments& arguments, const std::string& key)
      : file_(arguments.data_out), key_(find_key(file_, key)) {
    if (key_) {
      const EvalArray& array = file_.array(*key_);
      if (array.kind != EvalKind::kTensor || !array.shape.empty() ||
          !c10::isIntegralType(array.dtype, /*includeBool=*/false)) {
        throw Error(fmt::format("{} must hold one class an example as an integer, found {} {}",
                                *key_, type_name(array.dtype), shape_text(array.shape)));
      }
      return;
    }
    const at::Tensor all = arguments.data_in.labels(key);
    if (!all.defined()) {
      throw Error(
          fmt::format("no true classes: neither the dataset's labels nor {} have \"{}\"; "
                      "the file has: {}; return labels/{} from eval_op, or name another "
                      "key by \"target\"",
                      file_.path(), key, there_are(file_), key));
    }
    const at::Tensor index = file_.index();
    const bool fits = index.numel() == 0 || (index.min().item<int64_t>() >= 0 &&
                                             index.max().item<int64_t>() < all.size(0));
    if (all.dim() != 1 || !fits) {
      throw Error(
          fmt::format("the dataset's labels \"{}\" of shape {} do not fit the {} rows of {}", key,
                      shape_text(all.sizes().vec()), file_.rows(), file_.path()));
    }
    from_dataset_ = at::index_select(all.to(at::kLong), 0, index);
  }

  at::Tensor read(int64_t first, int64_t count) const {
    if (!key_) return from_dataset_.slice(0, first, first + count);
    return file_.read(*key_, first, count).to(at::kLong);
  }

 private:
  const EvalFile& file_;
  std::optional<std::string> key_;
  at::Tensor from_dataset_;
};

Logs accuracy(const CallbackArguments& arguments) {
  const EvalFile& file = arguments.data_out;
  const auto logits_key = arguments.params.get("logits", "logits");
  const auto target_key = arguments.params.get("target", "class");
  const auto logits = find_key(file, logits_key);
  if (!logits) {
    throw Error(
        fmt::format("no logits: {} has no outputs/{}; it has: {}; name another key by "
                    "\"logits\"",
                    file.path(), logits_key, there_are(file)));
  }
  const EvalArray& array = file.array(*logits);
  if (array.kind != EvalKind::kTensor || array.shape.size() != 1 || array.shape[0] == 0) {
    throw Error(fmt::format("{} must have the shape [classes] an example, found {}", *logits,
                            shape_text(array.shape)));
  }
  if (file.rows() == 0) throw Error(fmt::format("{} has no rows", file.path()));

  const TrueClasses target(arguments, target_key);
  const int64_t block = file.rows_per_block(*logits);
  int64_t correct = 0;
  for (int64_t first = 0; first < file.rows(); first += block) {
    const int64_t count = std::min(block, file.rows() - first);
    const at::Tensor predicted = at::argmax(file.read(*logits, first, count), 1);
    correct += at::eq(predicted, target.read(first, count)).sum().item<int64_t>();
  }
  Logs logs;
  logs.scalars.set("accuracy", static_cast<double>(correct) / static_cast<double>(file.rows()));
  return logs;
}

STEPOP_REGISTER_CALLBACK(accuracy, accuracy,
                         {"The share of examples whose largest logit is that of their class.",
                          {{"logits", "logits", "the key of the scores [classes] in the outputs"},
                           {"target", "class",
                            "the key of the true class, in the outputs or the dataset's labels"}}});

}  // namespace
}  // namespace stepop
