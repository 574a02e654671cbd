#include "runtime/tools/trial/describe.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <set>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

std::string describe(const Scalar& scalar) {
  return scalar.tensor() == nullptr ? "number" : describe_tensor(*scalar.tensor());
}

std::string describe(const EvalValue& value) {
  if (const auto* tensor = std::get_if<at::Tensor>(&value)) return describe_tensor(*tensor);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return fmt::format("{} texts", texts->size());
  }
  const auto& tensors = std::get<std::vector<at::Tensor>>(value);
  return fmt::format("{} tensors, the first {}", tensors.size(),
                     tensors.empty() ? "" : describe_tensor(tensors.front()));
}

}  // namespace

std::string describe_batch(const Batch& batch) {
  TextTable table({{"batch"}, {"tensor"}, {"device"}, {"memory", true}});
  for (const auto& [key, tensor] : batch.tensors()) {
    table.add({key, describe_tensor(tensor), tensor.device().str(),
               size_text(static_cast<double>(tensor.nbytes()))});
  }
  for (const auto& [key, texts] : batch.texts()) {
    table.add({key, fmt::format("{} texts", texts.size()), "", ""});
  }
  return table.text();
}

void ReturnedValues::set(const std::string& op, const Scalars& scalars) {
  std::vector<Row> rows;
  for (const auto& [key, scalar] : scalars) rows.push_back({op, key, "scalar", describe(scalar)});
  rows_.set(op, std::move(rows));
}

void ReturnedValues::set(const std::string& op, const Logs& logs) {
  set(op, logs.scalars);
  std::vector<Row>& rows = rows_[op];
  for (const auto& [key, images] : logs.images) {
    rows.push_back({op, key, "images", describe_tensor(images)});
  }
  for (const auto& [key, video] : logs.videos) {
    rows.push_back({op, key, "video", describe_tensor(video.frames)});
  }
  for (const auto& [key, audio] : logs.audio) {
    rows.push_back({op, key, "audio", describe_tensor(audio.samples)});
  }
  for (const auto& [key, text] : logs.texts) {
    rows.push_back({op, key, "text", fmt::format("{} bytes", text.size())});
  }
}

void ReturnedValues::set(const std::string& op, const EvalOutputs& outputs) {
  std::vector<Row> rows;
  for (const auto& [key, value] : outputs.outputs) {
    rows.push_back({op, key, "output", describe(value)});
  }
  for (const auto& [key, label] : outputs.labels) {
    rows.push_back({op, key, "label", describe_tensor(label.value())});
  }
  rows_.set(op, std::move(rows));
}

std::string ReturnedValues::table() const {
  TextTable table({{"returned by"}, {"key"}, {"as"}, {"tensor"}});
  bool is_empty = true;
  for (const auto& [op, rows] : rows_) {
    for (const auto& row : rows) {
      table.add(row);
      is_empty = false;
    }
  }
  return is_empty ? "" : table.text();
}

namespace {

/// The contents of a module and its submodules.
struct Contents {
  int64_t trainable = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
  std::set<const void*> seen;

  void add(const torch::nn::Module& module) {
    for (const auto& parameter : module.parameters()) add(parameter, true);
    for (const auto& buffer : module.buffers()) add(buffer, false);
  }

 private:
  void add(const at::Tensor& tensor, bool is_parameter) {
    if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) return;
    bytes += static_cast<int64_t>(tensor.nbytes());
    if (!is_parameter) return;
    parameters += tensor.numel();
    if (tensor.requires_grad()) trainable += tensor.numel();
  }
};

/// Shortens `torch::nn::Conv2dImpl` to Conv2d.
std::string class_name(const torch::nn::Module& module) {
  std::string name = module.name();
  name.resize(std::min(name.find('<'), name.size()));
  const size_t colons = name.rfind("::");
  if (colons != std::string::npos) name.erase(0, colons + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

void add_row(TextTable& table, const std::string& name, const std::string& class_name,
             const Contents& contents) {
  table.add({name, class_name, with_thousands(contents.trainable),
             with_thousands(contents.parameters), size_text(static_cast<double>(contents.bytes))});
}

void add_rows(TextTable& table, const std::string& name, const std::string& class_of_it,
              const torch::nn::Module& module, size_t depth) {
  Contents contents;
  contents.add(module);
  const bool is_empty = contents.seen.empty();
  if (depth > 0 && is_empty) return;
  add_row(table, std::string(2 * depth, ' ') + name, class_of_it, contents);
  for (const auto& child : module.named_children()) {
    add_rows(table, child.key(), class_name(*child.value()), *child.value(), depth + 1);
  }
}

}  // namespace

std::string module_table(const Networks& networks) {
  if (networks.empty()) return "";
  TextTable table(
      {{"network"}, {"class"}, {"trainable", true}, {"parameters", true}, {"memory", true}});
  const std::vector<std::string> names = networks.names();
  const std::vector<std::string> classes = networks.class_names();
  Contents all;
  for (size_t i = 0; i < names.size(); ++i) {
    const torch::nn::Module& network = *networks.get(names[i]);
    add_rows(table, names[i], classes[i], network, 0);
    all.add(network);
  }
  if (names.size() > 1) add_row(table, "all", "", all);
  return table.text();
}

}  // namespace stepop
