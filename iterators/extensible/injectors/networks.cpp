// Injectors that call networks.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/without_gradient.h"
#include "runtime/core/base/error.h"
#include "runtime/train/networks/autocast.h"

namespace stepop::extensible {
namespace {

/// `out = in`
class Direct : public Injector {
 public:
  Direct(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")), out_(ports.writes(params, "out")) {}
  void run(StepState& state, const Iteration&) override { state.set(out_, state.item(in_)); }

 private:
  Slot in_, out_;
};

/// Calls a network. The name `None` in a list `in` leaves that input out.
class Call : public Injector {
 public:
  Call(const Config& params, Ports& ports, const char* network, bool has_grad)
      : device_(ports.context().device),
        with_grad_(!has_grad || params.get("grad", true)),
        in_float32_(has_grad && !params.get("fp16", true)) {
    const auto module = ports.module(params, network);
    one_ = std::dynamic_pointer_cast<Network>(module);
    if (!one_) many_ = ports.network<MultiNetwork>(params, network);
    const Value* in = params.peek("in");
    if (in != nullptr && in->is_list()) {
      const auto names = params.get<std::vector<std::string>>("in");
      for (size_t i = 0; i < names.size(); ++i) {
        const std::string place = fmt::format("in/{}", i);
        in_.push_back(names[i] == "None" ? Slot{} : ports.reads_key(params, place, names[i]));
      }
    } else {
      in_.push_back(ports.reads(params, "in"));
    }
    is_list_ = params.peek("out") != nullptr && params.peek("out")->is_list();
    out_ = ports.writes_all(params, "out");
    if (one_ && (in_.size() != 1 || !in_.front())) {
      throw params.error("in", fmt::format("the network \"{}\" has one input, found {}",
                                           params.get<std::string>(network), in_.size()));
    }
    if (one_ && out_.size() != 1) {
      throw params.error("out", fmt::format("the network \"{}\" has one output, found {} names",
                                            params.get<std::string>(network), out_.size()));
    }
  }

  void run(StepState& state, const Iteration&) override {
    torch::nn::Module& network = one_ ? static_cast<torch::nn::Module&>(*one_) : *many_;
    std::optional<WithoutGradient> without;
    if (!with_grad_) without.emplace(network);
    std::optional<AutocastGuard> in_float32;
    if (in_float32_) in_float32.emplace(Precision::kFloat32, device_);
    std::vector<at::Tensor> inputs;
    for (const Slot slot : in_) {
      inputs.push_back(slot ? state.tensor(slot) : at::Tensor());
      if (in_float32_ && slot && inputs.back().is_floating_point())
        inputs.back() = inputs.back().to(at::kFloat);
    }
    if (one_) return state.set(out_.front(), one_->forward(inputs.front()));
    std::vector<at::Tensor> outputs = many_->forward_all(inputs);
    if (!is_list_ && outputs.size() > 1) {
      state.set(out_.front(), std::move(outputs));
      return;
    }
    if (outputs.size() != out_.size()) {
      throw Error(
          fmt::format("the network has {} outputs, and out names {}", outputs.size(), out_.size()));
    }
    for (size_t i = 0; i < out_.size(); ++i) state.set(out_[i], std::move(outputs[i]));
  }

 private:
  std::shared_ptr<Network> one_;
  std::shared_ptr<MultiNetwork> many_;
  std::vector<Slot> in_;  ///< An empty slot is an input that is left out.
  std::vector<Slot> out_;
  bool is_list_ = false;
  c10::Device device_;
  bool with_grad_;
  bool in_float32_;
};

class Generator : public Call {
 public:
  Generator(const Config& params, Ports& ports) : Call(params, ports, "generator", true) {}
};

class Discriminator : public Call {
 public:
  Discriminator(const Config& params, Ports& ports) : Call(params, ports, "discriminator", false) {}
};

STEPOP_REGISTER_INJECTOR(direct, Direct,
                         {"The same under another name.", {{"in", "", ""}, {"out", "", ""}}});
STEPOP_REGISTER_INJECTOR(generator, Generator,
                         {"What a network makes of its inputs.",
                          {{"generator", "", "the network"},
                           {"in", "", "a key, or a list of keys"},
                           {"out", "", "a key, or a list of keys"},
                           {"grad", "true", "false: in evaluation mode and without a graph"},
                           {"fp16", "true", "false: in float32, whatever precision is"}}});
STEPOP_REGISTER_INJECTOR(discriminator, Discriminator,
                         {"What a network makes of its inputs.",
                          {{"discriminator", "", "the network"}, {"in", "", ""}, {"out", "", ""}}});

}  // namespace
}  // namespace stepop::extensible
