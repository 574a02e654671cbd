#include "runtime/train/networks/sync_batch_norm.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/instance_norm_native.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// What synchronises this thread. It is global, because kernels of the dispatcher are functions.
thread_local SyncBatchNorm* current = nullptr;

/// PyTorch computes instance normalization as batch normalization of one batch; those calls stay
/// local.
thread_local bool is_in_instance_norm = false;

[[noreturn]] void refuse_one_value(const at::Tensor& input) {
  throw Error(
      fmt::format("Expected more than 1 value per channel when training, got input size [{}]",
                  fmt::join(input.sizes(), ", ")));
}

/// All dimensions except the channels.
std::vector<int64_t> dimensions_to_sum(const at::Tensor& input) {
  std::vector<int64_t> dimensions;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) dimensions.push_back(d);
  }
  return dimensions;
}

/// Reshapes [C] so that it can be added to the input.
at::Tensor by_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = values.numel();
  return values.to(input.scalar_type()).view(shape);
}

/// Sums over the processes, in float64.
at::Tensor summed(World& world, const at::Tensor& sums) {
  const at::Tensor all = sums.to(at::kDouble).contiguous();
  world.sum(all);
  return all.to(sums.device());
}

/// Ioffe and Szegedy 2015, over the batch of all processes.
class Normalize : public torch::autograd::Function<Normalize> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& some_weight,
                            const std::optional<at::Tensor>& some_bias,
                            const std::optional<at::Tensor>& some_mean,
                            const std::optional<at::Tensor>& some_var, double momentum,
                            double eps) {
    const at::Tensor weight = some_weight.value_or(at::Tensor());
    const at::Tensor bias = some_bias.value_or(at::Tensor());
    const at::Tensor running_mean = some_mean.value_or(at::Tensor());
    const at::Tensor running_var = some_var.value_or(at::Tensor());
    const auto dimensions = dimensions_to_sum(input);
    const int64_t channels = input.size(1);
    // A placeholder example, in a process without an example of the batch, has no weight.
    const bool counts = current->counts();
    const double own = counts ? static_cast<double>(input.numel() / channels) : 0;
    const at::Tensor exact = input.to(at::kDouble);
    at::Tensor sums = at::cat({exact.sum(dimensions), exact.square().sum(dimensions),
                               at::full({1}, own, exact.options())});
    if (!counts) sums.zero_();
    const at::Tensor all = summed(current->world(), sums);
    const double count = all[2 * channels].item<double>();
    if (count == 1) refuse_one_value(input);
    const at::Tensor mean = all.narrow(0, 0, channels) / count;
    const at::Tensor variance =
        (all.narrow(0, channels, channels) / count - mean.square()).clamp_min(0);
    if (running_mean.defined()) {
      running_mean.lerp_(mean.to(running_mean.scalar_type()), momentum);
      const at::Tensor unbiased = variance * (count / std::max(count - 1, 1.0));
      running_var.lerp_(unbiased.to(running_var.scalar_type()), momentum);
    }
    const at::Tensor scale = (variance + eps).rsqrt();
    at::Tensor output = (input - by_channel(mean, input)) * by_channel(scale, input);
    if (weight.defined()) output = output * by_channel(weight, input);
    if (bias.defined()) output = output + by_channel(bias, input);
    context->save_for_backward({input, weight, mean, scale});
    context->saved_data["count"] = count;
    // The backward pass of a device runs in another thread, where nothing is current.
    context->saved_data["world"] = reinterpret_cast<int64_t>(&current->world());
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const double count = context->saved_data["count"].toDouble();
    World& world = *reinterpret_cast<World*>(context->saved_data["world"].toInt());
    const auto dimensions = dimensions_to_sum(input);
    const at::Tensor& gradient = gradients[0];
    const at::Tensor normalized =
        (input - by_channel(saved[2], input)) * by_channel(saved[3], input);
    const at::Tensor of_bias = gradient.to(at::kDouble).sum(dimensions);
    const at::Tensor of_weight = (gradient * normalized).to(at::kDouble).sum(dimensions);
    const int64_t channels = input.size(1);
    const at::Tensor all = summed(world, at::cat({of_bias, of_weight})) / count;
    at::Tensor of_input = gradient - by_channel(all.narrow(0, 0, channels), input) -
                          normalized * by_channel(all.narrow(0, channels, channels), input);
    of_input = of_input * by_channel(saved[3], input);
    if (weight.defined()) of_input = of_input * by_channel(weight, input);
    const auto parameter = [&](const at::Tensor& sum) {
      return weight.defined() ? sum.to(weight.scalar_type()) : at::Tensor();
    };
    return {of_input,     parameter(of_weight), parameter(of_bias), at::Tensor(),
            at::Tensor(), at::Tensor(),         at::Tensor()};
  }
};

/// Replaces at::batch_norm.
at::Tensor batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias,
                      const std::optional<at::Tensor>& running_mean,
                      const std::optional<at::Tensor>& running_var, bool training, double momentum,
                      double eps, bool cudnn_enabled) {
  const bool is_own = is_in_instance_norm || current == nullptr || current->world().is_alone() ||
                      input.numel() == 0;
  if (!training || is_own) {
    if (training && !is_in_instance_norm) check_batch_norm(input);
    return at::native::batch_norm(input, weight, bias, running_mean, running_var, training,
                                  momentum, eps, cudnn_enabled);
  }
  return Normalize::apply(input, weight, bias, running_mean, running_var, momentum, eps);
}

/// Replaces at::instance_norm.
at::Tensor instance_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                         const std::optional<at::Tensor>& bias,
                         const std::optional<at::Tensor>& running_mean,
                         const std::optional<at::Tensor>& running_var, bool use_input_stats,
                         double momentum, double eps, bool cudnn_enabled) {
  struct Guard {
    bool before = std::exchange(is_in_instance_norm, true);
    ~Guard() { is_in_instance_norm = before; }
  } const guard;
  // The variance of the running statistics would become NaN.
  if (use_input_stats && running_var && running_var->defined() && input.dim() > 1 &&
      input.numel() == input.size(0) * input.size(1)) {
    throw Error(
        fmt::format("Expected more than 1 spatial element when training, got input size "
                    "[{}]",
                    fmt::join(input.sizes(), ", ")));
  }
  return at::native::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                                   momentum, eps, cudnn_enabled);
}

}  // namespace

void check_batch_norm(const at::Tensor& input) {
  if (input.dim() > 1 && input.numel() == input.size(1)) refuse_one_value(input);
}

void replace_normalization() {
  static const std::vector<std::unique_ptr<torch::Library>> libraries = [] {
    std::vector<std::unique_ptr<torch::Library>> made;
    std::vector<c10::DispatchKey> keys{c10::DispatchKey::AutogradCPU};
    if (const auto device = at::getAccelerator(/*checked=*/false)) {
      keys.push_back(c10::toRuntimePerBackendFunctionalityKey(
          c10::DispatchKey::AutogradFunctionality,
          c10::toBackendComponent(at::TensorOptions(*device).computeDispatchKey())));
    }
    for (const auto key : keys) {
      made.push_back(
          std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, __FILE__, __LINE__));
      made.back()->impl("batch_norm", TORCH_FN(batch_norm));
      made.back()->impl("instance_norm", TORCH_FN(instance_norm));
    }
    return made;
  }();
}

SyncBatchNorm::SyncBatchNorm(World& world, const StepClock& clock) : world_(world), clock_(clock) {
  replace_normalization();
}

SyncBatchNorm* SyncBatchNorm::of_thread() { return current; }

SyncBatchNorm::Scope::Scope(SyncBatchNorm* sync) : before_(std::exchange(current, sync)) {}

SyncBatchNorm::Scope::~Scope() { current = before_; }

}  // namespace stepop
