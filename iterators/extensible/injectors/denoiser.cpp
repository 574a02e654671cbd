#include "iterators/extensible/injectors/denoiser.h"

#include <fmt/format.h>

#include <algorithm>

#include "iterators/diffusion/options.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"

namespace stepop::extensible {

void Denoiser::Params::declare(Parameters& p, std::string_view about_network,
                               std::string_view about_options) {
  constexpr std::string_view kSchedule =
      "{schedule_name: linear or cosine, num_diffusion_timesteps: 1000}";
  constexpr std::string_view kArgs =
      "{model_mean_type, model_var_type, loss_type, rescale_timesteps}";
  p.require("generator", network, about_network);
  const Config* config = p.describe({"model_input_keys",
                                     "none",
                                     "input -> key of the state, {y: class}",
                                     false,
                                     {.kind = "map"}});
  p.describe(
      {"beta_schedule", "", fmt::format("{}{}", kSchedule, about_options), false, {.kind = "map"}});
  p.describe(
      {"diffusion_args", "", fmt::format("{}{}", kArgs, about_options), false, {.kind = "map"}});
  if (config == nullptr) return;
  options = diffusion::read_options(*config);
  if (!config->has("model_input_keys")) return;
  const Config keys = config->at("model_input_keys");
  for (const auto& name : keys.keys()) {
    inputs.emplace_back(name, ParameterOf<Port>::read(keys, name, {}));
  }
}

Denoiser::Denoiser(const Params& params, Ports& ports)
    : network_(ports.network<MultiNetwork>(params.network)) {
  const std::vector<std::string> all = network_->input_names();
  if (all.size() < 2) {
    throw params.network.error(
        fmt::format("the network \"{}\" is none of a diffusion: its inputs have to be x, the "
                    "timesteps, and what model_input_keys names",
                    params.network.name));
  }
  names_.assign(all.begin() + 2, all.end());
  keys_.resize(names_.size());
  for (const auto& [name, port] : params.inputs) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      const auto near = nearest_names(name, names_, 1);
      throw port.error(fmt::format("the network \"{}\" has no such input; there are: {}{}",
                                   params.network.name, names_.empty() ? "none" : list_text(names_),
                                   near.empty() ? "" : "; did you mean " + near[0] + "?"));
    }
    keys_[static_cast<size_t>(found - names_.begin())] = ports.reads(port);
  }
}

diffusion::GaussianDiffusion::Model Denoiser::model(const StepState& state, int64_t rows,
                                                    std::vector<at::Tensor>* further) const {
  std::vector<at::Tensor> inputs(2);
  for (const Slot key : keys_) {
    at::Tensor value = key ? state.tensor(key) : at::Tensor();
    if (value.defined() && rows > 0 && value.dim() > 0) {
      value = value.narrow(0, 0, std::min(rows, value.size(0)));
    }
    inputs.push_back(std::move(value));
  }
  return [network = network_, inputs, further](const at::Tensor& x,
                                               const at::Tensor& timesteps) mutable {
    inputs[0] = x;
    inputs[1] = timesteps;
    std::vector<at::Tensor> outputs = network->forward_all(inputs);
    if (outputs.empty()) throw Error("the network has no output");
    if (further != nullptr) further->assign(outputs.begin() + 1, outputs.end());
    return outputs.front();
  };
}

Slot Denoiser::input(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? Slot{} : keys_[static_cast<size_t>(found - names_.begin())];
}

std::vector<Slot> Denoiser::inputs() const {
  std::vector<Slot> given;
  for (const Slot key : keys_) {
    if (key) given.push_back(key);
  }
  return given;
}

}  // namespace stepop::extensible
