#include "models/exported/compiled_code.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

#include <algorithm>
#include <set>
#include <utility>

#include "models/exported/exported_file.h"
#include "runtime/core/base/error.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/temporary_folder.h"

namespace stepop {
namespace {

using Runner = torch::inductor::AOTIModelContainerRunner;
using Tensors = std::vector<at::Tensor>;

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

CompiledCode::CompiledCode(std::string path, CompiledMode description, const std::string& device,
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

CompiledCode::~CompiledCode() = default;

bool CompiledCode::wants_gradients() const {
  return std::ranges::any_of(tensors_, [](const PassTensor& each) {
    return each.tensor.defined() && each.tensor.requires_grad();
  });
}

Tensors CompiledCode::taken(const Tensors& inputs) {
  Tensors all;
  all.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const CompiledSource& source = description_.sources[i];
    const bool is_input = source.tensor.empty();
    if (!is_input) bring(i, inputs.front().device());
    const at::Tensor& tensor = is_input ? inputs.at(source.input) : tensors_[i].tensor;
    const auto dimensions = static_cast<int64_t>(source.order.size());
    if (tensor.scalar_type() != types_[i] || tensor.dim() != dimensions) {
      throw Error(fmt::format("{} was compiled as {} of {} dimensions, and is {} of {}",
                              is_input ? fmt::format("the input {}", source.input) : source.tensor,
                              c10::toString(types_[i]), dimensions,
                              c10::toString(tensor.scalar_type()), tensor.dim()));
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

void CompiledCode::check_frozen() const {
  for (const size_t i : frozen_) {
    if (!tensors_[i].tensor.requires_grad()) continue;
    throw Error(fmt::format("{} was frozen when the passes were compiled, and is not now",
                            description_.sources[i].tensor));
  }
}

Tensors CompiledCode::forward(const Tensors& all, Tensors& saved) {
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
    const bool is_changed = each.is_source ? is_written(tensor) : is_under_result(tensor, returned);
    saved.push_back(is_changed ? tensor.clone() : tensor);
  }
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < written_.size(); ++i) {
    if (written_[i].defined()) at::Tensor(written_[i]).copy_(returned[i]);
  }
  return returned;
}

Tensors CompiledCode::outputs(const Tensors& returned) const {
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

Tensors CompiledCode::backward(const Tensors& saved, const Tensors& of_outputs,
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

bool CompiledCode::has_tangent(size_t output) const {
  return std::ranges::any_of(description_.tangents, [&](const CompiledTangent& tangent) {
    return tangent.output == output;
  });
}

bool CompiledCode::is_written(const at::Tensor& tensor) const {
  return std::ranges::any_of(written_, [&](const at::Tensor& own) { return own.is_same(tensor); });
}

void CompiledCode::bring(size_t i, c10::Device device) {
  PassTensor& own = tensors_[i];
  if (own.tensor.device() == device) return;
  if (own.is_state) {
    throw Error(fmt::format("{} is on {}, and an input on {}", description_.sources[i].tensor,
                            own.tensor.device().str(), device.str()));
  }
  own.tensor = own.tensor.to(device);
}

bool CompiledCode::is_under_result(const at::Tensor& tensor, const Tensors& returned) const {
  bool is_under = false;
  for (size_t i = 0; i < written_.size(); ++i) {
    if (written_[i].defined()) continue;
    if (returned[i].is_same(tensor)) return false;
    is_under = is_under || returned[i].is_alias_of(tensor);
  }
  return is_under;
}

}  // namespace stepop
