#include "models/exported/compiled_passes.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "models/exported/exported_file.h"
#include "runtime/core/base/error.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/temporary_folder.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/float32_modules.h"
#include "runtime/train/networks/sync_batch_norm.h"

namespace stepop {
namespace {

using Tensors = std::vector<at::Tensor>;
using Runner = torch::inductor::AOTIModelContainerRunner;

bool is_identity(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

/// Whether the memory is dense and its dimensions lie in this order.
bool has_order(const at::Tensor& tensor, const std::vector<int64_t>& order) {
  if (tensor.dim() != static_cast<int64_t>(order.size())) return false;
  return is_identity(order) ? tensor.is_contiguous() : tensor.permute(order).is_contiguous();
}

/// The tensor, or a copy of it in this order, as numbers in memory.
at::Tensor in_order(const at::Tensor& given, const std::vector<int64_t>& order) {
  const at::Tensor tensor =
      given.is_conj() || given.is_neg() ? given.resolve_conj().resolve_neg() : given;
  if (has_order(tensor, order)) return tensor;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return tensor.permute(order).contiguous().permute(back);
}

/// The precision in which operations compute on a device now.
std::string precision_now(c10::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return "float32";
  return at::autocast::get_autocast_dtype(device) == at::kBFloat16 ? "bfloat16" : "float16";
}

/// `device` as of CompiledModes.
std::unique_ptr<Runner> load(const CompiledContent& content, const std::vector<std::string>& names,
                             const std::string& device) {
  // What is loaded stays when its file goes.
  const TemporaryFolder folder("stepop-compiled-");
  const auto place = [&](const std::string& name) {
    return folder / std::string_view(name).substr(name.rfind('/') + 1);
  };
  for (const auto& name : names) write_file_atomically(place(name), content.files.at(name));
  try {
    // On a GPU the other way waits for the last run, which a captured step must not.
    return torch::inductor::getAOTIModelRunnerRegistry().at(device)(
        place(names.front()), /*num_models=*/1, device, /*bin_dir=*/"",
        /*run_single_threaded=*/device != "cpu");
  } catch (const std::exception& error) {
    throw Error(fmt::format("{} cannot be loaded: {}", names.front(), error_text(error)));
  }
}

/// During its lifetime operations are neither recorded for autograd nor converted by autocast.
class PlainOperations {
 public:
  PlainOperations() : no_autocast_(c10::autocast_dispatch_keyset) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard no_autocast_;
  at::AutoDispatchBelowADInplaceOrView no_autograd_;
};

/// Gradients are taken into `.grad` as they are, so no two of them may share memory.
void separate(Tensors& gradients, const Tensors& given) {
  std::set<const void*> taken;
  for (const auto& tensor : given) taken.insert(tensor.storage().data());
  for (auto& gradient : gradients) {
    if (gradient.numel() > 0 && !taken.insert(gradient.storage().data()).second) {
      gradient = gradient.clone();
    }
  }
}

}  // namespace

/// The passes of one mode with the tensors of the network.
class CompiledPasses::Mode {
 public:
  Mode(std::string path, CompiledMode description, const std::string& device,
       const CompiledContent& content,
       const std::function<PassTensor(const std::string&)>& tensor_of)
      : path_(std::move(path)),
        description_(std::move(description)),
        forward_(load(content, description_.forward, device)) {
    if (!description_.backward.empty()) backward_ = load(content, description_.backward, device);
    for (const auto& source : description_.sources) {
      tensors_.push_back(source.tensor.empty() ? PassTensor() : tensor_of(source.tensor));
      types_.push_back(exported_type(source.type));
    }
    std::set<size_t> trained;
    for (const auto& gradient : description_.gradients) trained.insert(gradient.source);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const at::Tensor& tensor = tensors_[i].tensor;
      if (tensor.defined() && !trained.contains(i) && !tensor.requires_grad()) {
        frozen_.push_back(i);
      }
    }
    for (const auto& result : description_.results) {
      written_.push_back(result.tensor.empty() ? at::Tensor() : tensor_of(result.tensor).tensor);
    }
  }

  const std::string& path() const { return path_; }

  bool wants_gradients() const {
    return std::ranges::any_of(tensors_, [](const PassTensor& each) {
      return each.tensor.defined() && each.tensor.requires_grad();
    });
  }

  /// What the pass takes, as it was compiled for. All inputs are on one device.
  Tensors taken(const Tensors& inputs) {
    Tensors all;
    all.reserve(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const CompiledSource& source = description_.sources[i];
      const bool is_input = source.tensor.empty();
      if (!is_input) bring(i, inputs.front().device());
      const at::Tensor& tensor = is_input ? inputs.at(source.input) : tensors_[i].tensor;
      const auto dimensions = static_cast<int64_t>(source.order.size());
      if (tensor.scalar_type() != types_[i] || tensor.dim() != dimensions) {
        throw Error(
            fmt::format("{} was compiled as {} of {} dimensions, and is {} of {}",
                        is_input ? fmt::format("the input {}", source.input) : source.tensor,
                        c10::toString(types_[i]), dimensions, c10::toString(tensor.scalar_type()),
                        tensor.dim()));
      }
      if (!is_input && !has_order(tensor, source.order)) {
        throw Error(fmt::format(
            "{} lies in memory in another order than it was compiled for: compiled passes choose "
            "it themselves, so without channels_last",
            source.tensor));
      }
      all.push_back(is_input ? in_order(tensor, source.order) : tensor);
    }
    return all;
  }

  void check_frozen() const {
    for (const size_t i : frozen_) {
      if (!tensors_[i].tensor.requires_grad()) continue;
      throw Error(fmt::format("{} was frozen when the passes were compiled, and is not now",
                              description_.sources[i].tensor));
    }
  }

  /// What the forward pass returns. Tensors of the network have their new values.
  Tensors forward(const Tensors& all, Tensors& saved) {
    Tensors returned;
    {
      const PlainOperations plain;
      returned = forward_->run(all);
    }
    if (returned.size() < description_.returned) {
      throw Error(fmt::format("the compiled pass returned {} tensors, expected {}", returned.size(),
                              description_.returned));
    }
    for (const auto& each : description_.saved) {
      const at::Tensor& tensor = each.is_source ? all[each.place] : returned[each.place];
      const bool is_changed =
          each.is_source ? is_written(tensor) : is_under_result(tensor, returned);
      saved.push_back(is_changed ? tensor.clone() : tensor);
    }
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < written_.size(); ++i) {
      if (written_[i].defined()) at::Tensor(written_[i]).copy_(returned[i]);
    }
    return returned;
  }

  /// The results of the network in their order.
  Tensors outputs(const Tensors& returned) const {
    Tensors outputs(description_.results.size());
    size_t count = 0;
    for (size_t i = 0; i < description_.results.size(); ++i) {
      if (written_[i].defined()) continue;
      outputs[description_.results[i].output] = returned[i];
      ++count;
    }
    outputs.resize(count);
    return outputs;
  }

  /// The gradients of all sources, undefined where there are none. `zeros_of` makes the gradient of
  /// a result that has none.
  Tensors backward(const Tensors& saved, const Tensors& of_outputs,
                   const std::function<at::Tensor(size_t)>& zeros_of) {
    Tensors given = saved;
    for (const auto& tangent : description_.tangents) {
      const at::Tensor& own = of_outputs.at(tangent.output);
      given.push_back(in_order(own.defined() ? own : zeros_of(tangent.output), tangent.order));
    }
    Tensors returned;
    {
      const PlainOperations plain;
      returned = backward_->run(given);
    }
    if (returned.size() != description_.gradients.size()) {
      throw Error(fmt::format("the compiled backward pass returned {} tensors, expected {}",
                              returned.size(), description_.gradients.size()));
    }
    separate(returned, given);
    Tensors gradients(description_.sources.size());
    for (size_t i = 0; i < returned.size(); ++i) {
      const CompiledGradient& gradient = description_.gradients[i];
      const bool is_there = std::ranges::any_of(gradient.tangents, [&](size_t place) {
        return of_outputs.at(description_.tangents[place].output).defined();
      });
      if (is_there) gradients[gradient.source] = returned[i];
    }
    return gradients;
  }

  bool has_tangent(size_t output) const {
    return std::ranges::any_of(description_.tangents, [&](const CompiledTangent& tangent) {
      return tangent.output == output;
    });
  }

 private:
  bool is_written(const at::Tensor& tensor) const {
    return std::ranges::any_of(written_,
                               [&](const at::Tensor& own) { return own.is_same(tensor); });
  }

  /// The network moves its own tensors, and not the constants of a graph.
  void bring(size_t i, c10::Device device) {
    PassTensor& own = tensors_[i];
    if (own.tensor.device() == device) return;
    if (own.is_state) {
      throw Error(fmt::format("{} is on {}, and an input on {}", description_.sources[i].tensor,
                              own.tensor.device().str(), device.str()));
    }
    own.tensor = own.tensor.to(device);
  }

  /// Whether the memory is that of a result of the network, which its user may change, without
  /// being that result, whose changes autograd sees.
  bool is_under_result(const at::Tensor& tensor, const Tensors& returned) const {
    bool is_under = false;
    for (size_t i = 0; i < written_.size(); ++i) {
      if (written_[i].defined()) continue;
      if (returned[i].is_same(tensor)) return false;
      is_under = is_under || returned[i].is_alias_of(tensor);
    }
    return is_under;
  }

  std::string path_;
  CompiledMode description_;
  std::unique_ptr<Runner> forward_, backward_;
  std::vector<PassTensor> tensors_;    ///< For each source the network's, or undefined.
  std::vector<at::ScalarType> types_;  ///< For each source.
  Tensors written_;                    ///< For each result the tensor that takes it.
  std::vector<size_t> frozen_;         ///< Sources that had no gradient.
};

namespace {

/// The two passes as one operation of autograd.
template <class Mode>
class CompiledCall : public torch::autograd::Function<CompiledCall<Mode>> {
 public:
  static Tensors forward(torch::autograd::AutogradContext* context,
                         const std::shared_ptr<Mode>& mode, at::TensorList all) {
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
    explicit Held(std::shared_ptr<Mode> kept) : mode(std::move(kept)) {}
    std::shared_ptr<Mode> mode;
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
  training_ =
      std::make_shared<Mode>(path, std::move(modes.training), modes.device, content, tensor_of);
  evaluation_ =
      std::make_shared<Mode>(path, std::move(modes.evaluation), modes.device, content, tensor_of);
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
    return CompiledCall<Mode>::apply(mode, at::TensorList(all));
  }
  Tensors saved;
  return mode->outputs(mode->forward(all, saved));
}

}  // namespace stepop
