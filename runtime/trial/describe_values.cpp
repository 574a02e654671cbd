#include "runtime/trial/describe_values.h"

#include <fmt/format.h>

#include "runtime/base/size_text.h"
#include "runtime/base/text_table.h"
#include "runtime/measure/describe_tensor.h"

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
    rows.push_back({op, key, "label", describe_tensor(label)});
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

}  // namespace stepop
