// Injectors that call networks.
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/without_gradient.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/base/text.h"
#include "runtime/train/networks/autocast.h"

namespace stepop {
namespace extensible {
namespace {

/// `out = in`
class Direct : public Injector {
 public:
  using Params = InOut;
  Direct(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)), out_(ports.writes(params.out)) {}
  void run(StepState& state, const Iteration&) override { state.set(out_, state.item(in_)); }

 private:
  Slot in_, out_;
};

/// A number, or true or false as a number; empty for another value at `path`.
std::optional<double> number_at(const Config& config, std::string_view path) {
  const Value* value = config.peek(path);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return config.get<bool>(path) ? 1 : 0;
  if (value->is_int() || value->is_float()) return config.get<double>(path);
  return std::nullopt;
}

/// An input of a network: what a key of the state holds, or a number.
struct Input {
  Port key;
  std::optional<double> number = {};
};

}  // namespace
}  // namespace extensible

template <>
struct ParameterOf<std::vector<extensible::Input>> {
  static std::vector<extensible::Input> read(const Config& config, std::string_view path,
                                             const Allowed& allowed) {
    const Value* value = config.peek(path);
    if (value == nullptr || !value->is_list() || value->as_list().empty()) {
      std::vector<extensible::Input> inputs;
      for (auto& port : ParameterOf<std::vector<extensible::Port>>::read(config, path, allowed)) {
        inputs.push_back({.key = std::move(port)});
      }
      return inputs;
    }
    std::vector<extensible::Input> inputs;
    add_all(config, path, *value, allowed, inputs);
    return inputs;
  }
  /// A list within a list is as many inputs as it has entries, as in an exported module.
  static void add_all(const Config& config, std::string_view path, const Value& list,
                      const Allowed& allowed, std::vector<extensible::Input>& inputs) {
    for (size_t i = 0; i < list.as_list().size(); ++i) {
      const std::string place = fmt::format("{}/{}", path, i);
      const Value& item = list.as_list()[i];
      if (item.is_list()) {
        add_all(config, place, item, allowed, inputs);
      } else if (const auto number = extensible::number_at(config, place)) {
        inputs.push_back({.key = {}, .number = number});
      } else {
        inputs.push_back({.key = ParameterOf<extensible::Port>::read(config, place, allowed)});
      }
    }
  }
  static Value shown(const std::vector<extensible::Input>&) { return {}; }
  static std::string kind() { return "text | list of text | list of any"; }
};

namespace extensible {
namespace {

/// What a call of a network is connected with.
struct CallParams {
  Port network;
  std::vector<Input> in;
  std::vector<Port> out;
  OrderedMap<double> args;  ///< Further inputs by their names.
  bool grad = true;
  bool fp16 = true;

  void declare(Parameters& p, const char* key, const char* about = "") {
    p.require(key, network, "the network");
    p.require("in", in, about);
    p.require("out", out, about);
  }
};

/// Calls a network. In a list `in`, which may have further lists, the name `None` leaves that input
/// out, and a number, true or false is an input of this value: a tensor with one element, on the
/// CPU. A list `out` names the first outputs.
class Call : public Injector {
 public:
  Call(const CallParams& params, const Config& config, Ports& ports)
      : one_(std::dynamic_pointer_cast<Network>(ports.module(params.network))),
        many_(one_ ? nullptr : ports.network<MultiNetwork>(params.network)),
        is_list_(config.peek("out")->is_list()),
        device_(ports.context().device),
        with_grad_(params.grad),
        in_float32_(!params.fp16) {
    const bool is_in_list = config.peek("in")->is_list();
    for (const auto& [key, number] : params.in) {
      const bool is_key = !number && !(is_in_list && key.name == "None");
      in_.push_back(is_key ? ports.reads(key) : Slot{});
      numbers_.push_back(number ? at::scalar_tensor(*number, at::kDouble) : at::Tensor());
    }
    add_args(params.args, config);
    out_ = ports.writes_all(params.out);
    if (one_ && (in_.size() != 1 || !in_.front())) {
      throw config.error("in", fmt::format("the network \"{}\" has one input, found {}",
                                           params.network.name, in_.size()));
    }
    if (one_ && out_.size() != 1) {
      throw config.error("out", fmt::format("the network \"{}\" has one output, found {} names",
                                            params.network.name, out_.size()));
    }
  }

  void run(StepState& state, const Iteration&) override {
    torch::nn::Module& network = one_ ? static_cast<torch::nn::Module&>(*one_) : *many_;
    std::optional<WithoutGradient> without;
    if (!with_grad_) without.emplace(network);
    std::optional<AutocastGuard> in_float32;
    if (in_float32_) in_float32.emplace(Precision::kFloat32, device_);
    std::vector<at::Tensor> inputs;
    for (size_t i = 0; i < in_.size(); ++i) {
      const Slot slot = in_[i];
      inputs.push_back(slot ? state.tensor(slot) : numbers_[i]);
      if (in_float32_ && slot && inputs.back().is_floating_point())
        inputs.back() = inputs.back().to(at::kFloat);
    }
    if (one_) return state.set(out_.front(), one_->forward(inputs.front()));
    std::vector<at::Tensor> outputs = many_->forward_all(inputs);
    if (!is_list_ && outputs.size() > 1) {
      state.set(out_.front(), std::move(outputs));
      return;
    }
    if (outputs.size() < out_.size()) {
      throw Error(
          fmt::format("the network has {} outputs, and out names {}", outputs.size(), out_.size()));
    }
    for (size_t i = 0; i < out_.size(); ++i) state.set(out_[i], std::move(outputs[i]));
  }

 private:
  void add_args(const OrderedMap<double>& args, const Config& config) {
    const auto names = many_ ? many_->input_names() : std::vector<std::string>();
    for (const auto& [name, number] : args) {
      const auto place = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
      if (place == names.size()) {
        throw config.error("args/" + name,
                           fmt::format("the network has no input of this name; there are: {}",
                                       names.empty() ? "none with a name" : list_text(names)));
      }
      if (in_.size() <= place) {
        in_.resize(place + 1);
        numbers_.resize(place + 1);
      }
      if (in_[place] || numbers_[place].defined()) {
        throw config.error("args/" + name,
                           fmt::format("is input {} of the network, which `in` gives", place));
      }
      numbers_[place] = at::scalar_tensor(number, at::kDouble);
    }
  }

  std::shared_ptr<Network> one_;
  std::shared_ptr<MultiNetwork> many_;
  std::vector<Slot> in_;             ///< An empty slot is a number, or an input that is left out.
  std::vector<at::Tensor> numbers_;  ///< As `in_`; undefined without a number.
  std::vector<Slot> out_;
  bool is_list_;
  c10::Device device_;
  bool with_grad_;
  bool in_float32_;
};

class Generator : public Call {
 public:
  struct Params : CallParams {
    void declare(Parameters& p) {
      CallParams::declare(p, "generator", "a key, or a list of keys, None, numbers and such lists");
      const Config* config = p.describe_optional(
          "args", "map",
          "numbers, true or false for further inputs by their names: {reverse: true}");
      if (config != nullptr) read_args(*config);
      p.add("grad", grad, "false: in evaluation mode and without a graph");
      p.add("fp16", fp16, "false: in float32, whatever precision is");
    }

    void read_args(const Config& config) {
      const Config given = config.at("args");
      for (const auto& name : given.keys()) {
        if (!given.has(name)) continue;
        const auto number = number_at(given, name);
        if (!number) {
          throw given.error(name,
                            fmt::format("expected a number, true or false, found {}; a tensor "
                                        "of the state is named by `in`",
                                        given.peek(name)->describe()));
        }
        args.set(name, *number);
      }
    }
  };
  using Call::Call;
};

class Discriminator : public Call {
 public:
  struct Params : CallParams {
    void declare(Parameters& p) { CallParams::declare(p, "discriminator"); }
  };
  using Call::Call;
};

STEPOP_REGISTER_INJECTOR(direct, Direct, {"The same under another name."});
STEPOP_REGISTER_INJECTOR(generator, Generator, {"What a network makes of its inputs."});
STEPOP_REGISTER_INJECTOR(discriminator, Discriminator, {"What a network makes of its inputs."});

}  // namespace
}  // namespace extensible
}  // namespace stepop
