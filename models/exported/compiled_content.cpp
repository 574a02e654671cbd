#include "models/exported/compiled_content.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "runtime/core/base/error.h"

namespace stepop {

using Json = nlohmann::json;

namespace {

constexpr int64_t kVersion = 1;

/// A whole number from 0 to `end` - 1.
size_t place_within(const Json& value, size_t end) {
  const int64_t number = whole_number(value);
  if (number < 0 || static_cast<size_t>(number) >= end) {
    throw Error(fmt::format("the place {} is not below {}", number, end));
  }
  return static_cast<size_t>(number);
}

/// Each of the dimensions once.
std::vector<int64_t> order_of(const Json& value) {
  std::vector<int64_t> order;
  for (const auto& each : value) {
    order.push_back(static_cast<int64_t>(place_within(each, value.size())));
  }
  if (std::set<int64_t>(order.begin(), order.end()).size() != order.size()) {
    throw Error("an order has a dimension twice");
  }
  return order;
}

CompiledSource read_source(const Json& value, size_t inputs) {
  CompiledSource source{.type = whole_number(value.at("type")),
                        .order = order_of(value.at("order"))};
  exported_type(source.type);
  if (value.contains("tensor")) {
    source.tensor = value.at("tensor").get<std::string>();
  } else {
    source.input = place_within(value.at("input"), inputs);
  }
  return source;
}

CompiledResult read_result(const Json& value, size_t outputs) {
  CompiledResult result;
  if (value.contains("tensor")) {
    result.tensor = value.at("tensor").get<std::string>();
  } else {
    result.output = place_within(value.at("output"), outputs);
  }
  return result;
}

/// The files of a pass, which are those that its description was made with.
std::vector<std::string> read_files(const Json& value, const CompiledContent& content) {
  std::vector<std::string> names;
  for (const auto& file : value) names.push_back(file.at("path").get<std::string>());
  const auto is_known = [&](const std::string& name) { return content.files.contains(name); };
  if (names.empty() || !std::ranges::all_of(names, is_known)) throw Error("a library is missing");
  return names;
}

CompiledSaved read_saved(const Json& value, const CompiledMode& mode, size_t saved) {
  if (value.contains("input")) {
    return {.is_source = true, .place = place_within(value.at("input"), mode.sources.size())};
  }
  // The forward pass returns what else is saved behind its results.
  return {.place = place_within(value.at("result"), mode.results.size() + saved)};
}

CompiledGradient read_gradient(const Json& value, const CompiledMode& mode) {
  CompiledGradient gradient;
  for (const auto& each : value.at("tangents")) {
    gradient.tangents.push_back(place_within(each, mode.tangents.size()));
  }
  const bool is_input = value.contains("input");
  const std::string tensor = is_input ? "" : value.at("tensor").get<std::string>();
  const int64_t input = is_input ? whole_number(value.at("input")) : 0;
  for (size_t i = 0; i < mode.sources.size(); ++i) {
    const CompiledSource& source = mode.sources[i];
    if (source.tensor != tensor || static_cast<int64_t>(source.input) != input) continue;
    gradient.source = i;
    return gradient;
  }
  throw Error("has a gradient of something that it does not take");
}

void read_backward(const Json& value, const CompiledContent& content, size_t outputs,
                   CompiledMode& mode) {
  const Json& saved = value.at("saved");
  for (const auto& each : saved) {
    mode.saved.push_back(read_saved(each, mode, saved.size()));
    const CompiledSaved& last = mode.saved.back();
    if (!last.is_source) mode.returned = std::max(mode.returned, last.place + 1);
  }
  for (const auto& each : value.at("tangents")) {
    mode.tangents.push_back(
        {.output = place_within(each.at("output"), outputs), .order = order_of(each.at("order"))});
  }
  for (const auto& each : value.at("gradients")) {
    mode.gradients.push_back(read_gradient(each, mode));
  }
  mode.backward = read_files(value.at("backward"), content);
}

CompiledMode read_mode(const Json& value, const CompiledContent& content, size_t inputs,
                       size_t outputs) {
  CompiledMode mode;
  for (const auto& each : value.at("inputs")) mode.sources.push_back(read_source(each, inputs));
  std::set<size_t> given;
  for (const auto& each : value.at("results")) {
    mode.results.push_back(read_result(each, outputs));
    if (mode.results.back().tensor.empty()) given.insert(mode.results.back().output);
  }
  if (given.size() != outputs) throw Error("a result of the network is missing");
  mode.forward = read_files(value.at("forward"), content);
  mode.returned = mode.results.size();
  if (value.contains("backward")) read_backward(value, content, outputs, mode);
  return mode;
}

/// The instructions of this processor, as Linux names them.
std::set<std::string> processor_features() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;  // x86-64, aarch64
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
  }
  return {};
}

void check_machine(const Json& passes, const std::string& path) {
  const auto again = [&](const std::string& why) {
    return Error(fmt::format("{}: its passes were compiled {}: {}", path, why,
                             compile_command(path, passes.value("precision", "float32"),
                                             passes.value("device", "cpu"))));
  };
  if (whole_number(passes.at("version")) != kVersion) throw again("by another version of stepop");
  const std::string torch = passes.at("torch").get<std::string>();
  if (torch != TORCH_VERSION) {
    throw again(fmt::format("for LibTorch {}, and this is {}", torch, TORCH_VERSION));
  }
  const auto& devices = torch::inductor::getAOTIModelRunnerRegistry();
  if (const auto device = passes.at("device").get<std::string>(); !devices.contains(device)) {
    throw Error(
        fmt::format("{}: its passes were compiled for {}, which this LibTorch does not "
                    "support: {}",
                    path, device, compile_command(path, passes.value("precision", ""))));
  }
  const auto here = processor_features();
  std::vector<std::string> missing;
  for (const auto& each : passes.at("processor")) {
    if (!here.contains(each.get<std::string>())) missing.push_back(each.get<std::string>());
  }
  if (!missing.empty()) {
    throw again(fmt::format("for a processor that has {}, which this one has not",
                            fmt::join(missing, ", ")));
  }
}

}  // namespace

std::string compile_command(const std::string& path, std::string_view precision,
                            std::string_view device) {
  std::string target;
  if (device != "cpu") {
    target = fmt::format(" {}:{}", device, precision);
  } else if (precision != "float32") {
    target = fmt::format(" {}", precision);
  }
  return fmt::format("python -m stepop.eval.export {} --compile{} -o {}", path, target, path);
}

CompiledModes read_compiled(const CompiledContent& content, const std::string& path, size_t inputs,
                            size_t outputs) {
  const Json& passes = content.passes;
  check_machine(passes, path);
  const Json& modes = passes.at("passes");
  CompiledModes read{.training = read_mode(modes.at("training"), content, inputs, outputs),
                     .evaluation = read_mode(modes.at("evaluation"), content, inputs, outputs),
                     .precision = passes.at("precision").get<std::string>(),
                     .device = passes.at("device").get<std::string>()};
  if (read.training.backward.empty()) throw Error("the backward pass is missing");
  return read;
}

}  // namespace stepop
