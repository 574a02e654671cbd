#include "runtime/train/checkpoint/state_bytes.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"

namespace stepop {

std::string to_bytes(const State& state) {
  nlohmann::json header = nlohmann::json::array();
  std::vector<at::Tensor> tensors;
  size_t size = 0;
  for (const auto& [name, tensor] : state) {
    nlohmann::json entry{{"name", name}};
    if (tensor.defined()) {
      tensors.push_back(tensor.detach().cpu().contiguous());
      entry["type"] = static_cast<int>(tensor.scalar_type());
      entry["sizes"] = tensor.sizes().vec();
      size += tensors.back().nbytes();
    }
    header.push_back(std::move(entry));
  }
  std::string bytes = write_json(header);
  bytes.reserve(bytes.size() + 1 + size);
  bytes += '\n';
  for (const auto& tensor : tensors) {
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  return bytes;
}

State state_from_bytes(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const auto header = read_json(bytes.substr(0, end));
  bytes.remove_prefix(end + 1);
  State state;
  for (const auto& entry : header) {
    at::Tensor& tensor = state[entry.at("name").get<std::string>()];
    if (!entry.contains("type")) continue;
    tensor = at::empty(entry.at("sizes").get<std::vector<int64_t>>(),
                       at::TensorOptions(static_cast<at::ScalarType>(entry.at("type").get<int>())));
    if (tensor.nbytes() > bytes.size()) throw Error("a state of another process is cut off");
    if (tensor.nbytes() > 0) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), tensor.nbytes());
    bytes.remove_prefix(tensor.nbytes());
  }
  return state;
}

}  // namespace stepop
