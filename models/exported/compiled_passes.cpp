#include "models/exported/compiled_passes.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/float32_modules.h"
#include "runtime/train/networks/sync_batch_norm.h"

namespace stepop {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The precision in which operations compute on a device now.
std::string precision_now(c10::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return "float32";
  return at::autocast::get_autocast_dtype(device) == at::kBFloat16 ? "bfloat16" : "float16";
}

/// The two passes as one operation of autograd.
class CompiledCall : public torch::autograd::Function<CompiledCall> {
 public:
  static Tensors forward(torch::autograd::AutogradContext* context,
                         const std::shared_ptr<CompiledCode>& mode, at::TensorList all) {
    Tensors saved;
    const Tensors outputs = mode->outputs(mode->forward(all.vec(), saved));
    auto held = c10::make_intrusive<Held>(mode);
    Tensors without_gradient;
    for (size_t i = 0; i < outputs.size(); ++i) {
      held->results.emplace_back(outputs[i].sizes().vec(), outputs[i].options());
      if (!mode->has_tangent(i)) without_gradient.push_back(outputs[i]);
    }
    context->mark_non_differentiable(without_gradient);
    context->set_materialize_grads(false);
    context->save_for_backward(saved);
    context->saved_data["mode"] = c10::IValue::make_capsule(std::move(held));
    return outputs;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    const auto held = context->saved_data["mode"].toCapsule();
    const auto& mode = static_cast<const Held&>(*held).mode;
    const auto& results = static_cast<const Held&>(*held).results;
    const auto zeros_of = [&](size_t output) {
      return at::zeros(results.at(output).first, results.at(output).second);
    };
    try {
      if (at::GradMode::is_enabled()) {
        throw Error("gradients of gradients are not compiled: compiled: false");
      }
      Tensors all = {at::Tensor()};  // of the first argument
      for (auto& gradient : mode->backward(context->get_saved_variables(), gradients, zeros_of)) {
        all.push_back(std::move(gradient));
      }
      return all;
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: {}", mode->path(), error_text(error)));
    }
  }

 private:
  /// The graph keeps the code alive.
  struct Held : torch::CustomClassHolder {
    explicit Held(std::shared_ptr<CompiledCode> kept) : mode(std::move(kept)) {}
    std::shared_ptr<CompiledCode> mode;
    std::vector<std::pair<std::vector<int64_t>, at::TensorOptions>> results;
  };
};

}  // namespace

CompiledPasses::CompiledPasses(const CompiledContent& content, const std::string& path,
                               size_t inputs, size_t outputs, bool has_batch_norm,
                               const std::function<PassTensor(const std::string&)>& tensor_of)
    : path_(path), has_batch_norm_(has_batch_norm) {
  CompiledModes modes = read_compiled(content, path, inputs, outputs);
  precision_ = modes.precision;
  device_ = c10::Device(modes.device).type();
  training_ = std::make_shared<CompiledCode>(path, std::move(modes.training), modes.device, content,
                                             tensor_of);
  evaluation_ = std::make_shared<CompiledCode>(path, std::move(modes.evaluation), modes.device,
                                               content, tensor_of);
}

CompiledPasses::~CompiledPasses() = default;

bool CompiledPasses::can_run(const std::vector<at::Tensor>& inputs, bool training) const {
  if (torch::jit::tracer::isTracing()) return false;
  // Its statistics of one value are refused by the graph, which knows the layer.
  const bool is_single = !inputs.empty() && inputs[0].dim() > 0 && inputs[0].size(0) < 2;
  if (training && has_batch_norm_ && is_single) return false;
  if (!at::GradMode::is_enabled()) return true;
  const auto is_wanted = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  if (std::ranges::any_of(inputs, is_wanted)) return false;
  return training || !evaluation_->wants_gradients();
}

void CompiledPasses::check_device(c10::Device device) const {
  if (device.type() != device_) {
    const bool can_compile = device.is_cpu() || device.is_cuda();
    const std::string type = c10::DeviceTypeName(device.type(), /*lower_case=*/true);
    throw Error(
        fmt::format("its passes were compiled for {}, and an input is on {}: {}",
                    c10::DeviceTypeName(device_, /*lower_case=*/true), type,
                    can_compile ? compile_command(path_, precision_, type) : "compiled: false"));
  }
  // The libraries were loaded for the first.
  if (device.has_index() && device.index() > 0) {
    throw Error(
        fmt::format("compiled passes run on the first GPU alone, and an input is on {}: "
                    "compiled: false",
                    device.str()));
  }
}

void CompiledPasses::check_settings(const torch::nn::Module& network,
                                    const std::vector<at::Tensor>& inputs, bool training) {
  for (const auto& input : inputs) check_device(input.device());
  if (const std::string now = precision_now(device_); now != precision_) {
    throw Error(fmt::format("its passes were compiled in {}, and precision is {}: {}", precision_,
                            now, compile_command(path_, now, c10::DeviceTypeName(device_, true))));
  }
  if (modules_.empty()) {
    for (const auto& module : network.modules()) modules_.push_back(module.get());
  }
  const auto& run_again = checkpointing::named_modules();
  for (const torch::nn::Module* module : modules_) {
    if (!run_again.empty() && run_again.contains(module)) {
      throw Error(
          "checkpoint_modules: the compiled passes have decided what is kept for the backward "
          "pass: leave it out, or compiled: false");
    }
    if (float32_device(*module)) {
      throw Error(
          "float32_modules: compiled passes have one precision; torch.autocast(..., enabled=False) "
          "in forward keeps a part in float32, or compiled: false");
    }
  }
  if (training && has_batch_norm_ && SyncBatchNorm::of_thread() != nullptr) {
    throw Error("sync_batch_norm: compiled passes see the batch of one process: compiled: false");
  }
}

std::vector<at::Tensor> CompiledPasses::run(const torch::nn::Module& network,
                                            const std::vector<at::Tensor>& inputs, bool training) {
  check_settings(network, inputs, training);
  const auto& mode = training ? training_ : evaluation_;
  const Tensors all = mode->taken(inputs);
  if (training && at::GradMode::is_enabled()) {
    mode->check_frozen();
    return CompiledCall::apply(mode, at::TensorList(all));
  }
  Tensors saved;
  return mode->outputs(mode->forward(all, saved));
}

}  // namespace stepop
