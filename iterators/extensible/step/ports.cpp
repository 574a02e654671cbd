#include "iterators/extensible/step/ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

using extensible::Port;

Port ParameterOf<Port>::read(const Config& config, std::string_view path, const Allowed&) {
  return {config.get<std::string>(path), config.where(path)};
}

std::vector<Port> ParameterOf<std::vector<Port>>::read(const Config& config, std::string_view path,
                                                       const Allowed&) {
  const Value* value = config.peek(path);
  if (value == nullptr || !value->is_list()) return {ParameterOf<Port>::read(config, path, {})};
  const auto names = config.get<std::vector<std::string>>(path);
  if (names.empty()) throw config.error(path, "expected the name of a key, found an empty list");
  std::vector<Port> ports;
  for (size_t i = 0; i < names.size(); ++i) {
    ports.push_back({names[i], config.where(fmt::format("{}/{}", path, i))});
  }
  return ports;
}

namespace extensible {

Slot Ports::reads(const Port& port) {
  if (!port) return {};
  reads_.push_back({keys_.slot(port.name), port.place});
  return reads_.back().slot;
}

std::vector<Slot> Ports::reads_all(const std::vector<Port>& ports) {
  std::vector<Slot> slots;
  for (const Port& port : ports) slots.push_back(reads(port));
  return slots;
}

Slot Ports::writes(const Port& port) {
  if (!port) return {};
  writes_.push_back({keys_.slot(port.name), port.place});
  return writes_.back().slot;
}

std::vector<Slot> Ports::writes_all(const std::vector<Port>& ports) {
  std::vector<Slot> slots;
  for (const Port& port : ports) slots.push_back(writes(port));
  return slots;
}

Slot Ports::reads(const Config& params, std::string_view key) {
  return reads(ParameterOf<Port>::read(params, key, {}));
}

std::vector<Slot> Ports::reads_all(const Config& params, std::string_view key) {
  return reads_all(ParameterOf<std::vector<Port>>::read(params, key, {}));
}

Slot Ports::writes(const Config& params, std::string_view key) {
  return writes(ParameterOf<Port>::read(params, key, {}));
}

std::vector<Slot> Ports::writes_all(const Config& params, std::string_view key) {
  return writes_all(ParameterOf<std::vector<Port>>::read(params, key, {}));
}

std::shared_ptr<torch::nn::Module> Ports::module(const Config& params, std::string_view key) {
  return module(ParameterOf<Port>::read(params, key, {}));
}

std::shared_ptr<torch::nn::Module> Ports::module(const Port& port) {
  const auto names = context_.networks.names();
  for (const auto& known : names) {
    if (known == port.name) return context_.networks.get(known);
  }
  const auto near = nearest_names(port.name, names, 1);
  throw port.error(fmt::format("no network \"{}\"; there are: {}{}", port.name,
                               fmt::join(names, ", "),
                               near.empty() ? "" : "; did you mean " + near[0] + "?"));
}

void Ports::fail_type(const Port& port) {
  throw port.error(
      fmt::format("the network \"{}\" is not one that can be called from a config: "
                  "it derives from neither stepop::Network nor stepop::MultiNetwork",
                  port.name));
}

}  // namespace extensible
}  // namespace stepop
