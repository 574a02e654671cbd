#include "runtime/train/loop/eval_message.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "runtime/core/base/json_text.h"
#include "runtime/core/formats/state.h"
#include "runtime/train/checkpoint/state_bytes.h"

namespace stepop {

/// A line of JSON with the keys in their order and the texts, followed by the tensors,
/// `<entry>.<number>`.
std::string to_bytes(const EvalMessage& message) {
  nlohmann::json about = nlohmann::json::object();
  about["indices"] = message.indices;
  about["outputs"] = nlohmann::json::array();
  about["labels"] = nlohmann::json::array();
  State tensors;
  for (const auto& [key, value] : message.outputs.outputs) {
    const std::string name = fmt::format("output{}", about["outputs"].size());
    nlohmann::json entry{{"key", key}};
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      tensors[name + ".0"] = *tensor;
    } else if (const auto* ragged = std::get_if<std::vector<at::Tensor>>(&value)) {
      entry["ragged"] = ragged->size();
      for (size_t i = 0; i < ragged->size(); ++i) {
        tensors[fmt::format("{}.{}", name, i)] = (*ragged)[i];
      }
    } else {
      // Texts may have arbitrary bytes.
      entry["texts"] = nlohmann::json::array();
      for (const auto& text : std::get<std::vector<std::string>>(value)) {
        entry["texts"].push_back(std::vector<uint8_t>(text.begin(), text.end()));
      }
    }
    about["outputs"].push_back(std::move(entry));
  }
  for (const auto& [key, label] : message.outputs.labels) {
    const std::string name = fmt::format("label{}", about["labels"].size());
    tensors[name + ".0"] = label.value();
    if (label.has_weight()) tensors[name + ".weight"] = label.weight();
    about["labels"].push_back(key);
  }
  return write_json(about) + "\n" + to_bytes(tensors);
}

EvalMessage eval_message_from_bytes(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const auto about = read_json(bytes.substr(0, end));
  const State tensors = state_from_bytes(bytes.substr(end + 1));
  EvalMessage message;
  message.indices = about.at("indices").get<std::vector<int64_t>>();
  for (size_t number = 0; number < about.at("outputs").size(); ++number) {
    const auto& entry = about["outputs"][number];
    EvalValue value;
    if (entry.contains("texts")) {
      std::vector<std::string> texts;
      for (const auto& text : entry["texts"]) {
        const auto of_text = text.get<std::vector<uint8_t>>();
        texts.emplace_back(of_text.begin(), of_text.end());
      }
      value = std::move(texts);
    } else if (entry.contains("ragged")) {
      std::vector<at::Tensor> ragged;
      for (size_t i = 0; i < entry["ragged"].get<size_t>(); ++i) {
        ragged.push_back(tensors.at(fmt::format("output{}.{}", number, i)));
      }
      value = std::move(ragged);
    } else {
      value = tensors.at(fmt::format("output{}.0", number));
    }
    message.outputs.outputs.set(entry.at("key").get<std::string>(), std::move(value));
  }
  for (size_t number = 0; number < about.at("labels").size(); ++number) {
    const std::string name = fmt::format("label{}", number);
    const auto weight = tensors.find(name + ".weight");
    message.outputs.labels.set(
        about["labels"][number].get<std::string>(),
        {tensors.at(name + ".0"), weight == tensors.end() ? at::Tensor() : weight->second});
  }
  return message;
}

}  // namespace stepop
