// What a backward pass runs a second time, and LibTorch's engine with the hooks for it.
#include "runtime/train/networks/second_run.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/sync_batch_norm.h"

namespace stepop {
namespace {

std::atomic<bool> was_called = false;

std::vector<int64_t> versions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> versions;
  for (const auto& tensor : tensors) {
    const bool has_version = tensor.defined() && !tensor.is_inference();
    versions.push_back(has_version ? tensor._version() : 0);
  }
  return versions;
}

}  // namespace

namespace checkpointing {

/// The types of autocast; at::ThreadLocalState has whether it is on.
class AutocastTypes {
 public:
  explicit AutocastTypes(const c10::Device& device)
      : devices_{c10::kCPU, device.type()}, is_cached_(at::autocast::is_autocast_cache_enabled()) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      types_[i] = at::autocast::get_autocast_dtype(devices_[i]);
    }
  }
  void set() const {
    for (size_t i = 0; i < devices_.size(); ++i) {
      at::autocast::set_autocast_dtype(devices_[i], types_[i]);
    }
    at::autocast::set_autocast_cache_enabled(is_cached_);
  }

 private:
  std::array<c10::DeviceType, 2> devices_;
  std::array<at::ScalarType, 2> types_{};
  bool is_cached_;
};

/// The state on this thread that a module's result depends on, besides its inputs and weights:
/// which ops are recorded and cast, whose batches are normalized together, and the next random
/// numbers.
class Surroundings {
 public:
  explicit Surroundings(const c10::Device& device)
      : device_(device), types_(device), cpu_state_(generator_state(c10::kCPU)) {
    if (!device_.is_cpu()) device_state_ = generator_state(device_);
  }

  void set() const noexcept {
    types_.set();
    restore_generator_state(c10::kCPU, cpu_state_);
    if (!device_.is_cpu()) restore_generator_state(device_, device_state_);
  }
  const at::ThreadLocalState& thread() const { return thread_; }
  const c10::Device& device() const { return device_; }
  SyncBatchNorm* sync_batch_norm() const { return sync_batch_norm_; }

 private:
  c10::Device device_;
  SyncBatchNorm* sync_batch_norm_ = SyncBatchNorm::of_thread();
  at::ThreadLocalState thread_;
  AutocastTypes types_;
  at::Tensor cpu_state_;
  at::Tensor device_state_;
};

/// Thrown to end the second run of a module once it has given all wanted tensors.
struct GotAll {};

/// One call of a module, and the tensors of its second run.
class Region::Call {
 public:
  Call(torch::nn::Module& module, std::function<void()> forward, std::vector<at::Tensor> inputs)
      : module_(module),
        path_(named_modules().at(&module).path),
        forward_(std::move(forward)),
        surroundings_(device_of(module, inputs)),
        inputs_(std::move(inputs)),
        weights_(module.parameters()),
        versions_of_inputs_(versions_of(inputs_)),
        versions_of_weights_(versions_of(weights_)) {}

  /// Returns the number of the next saved tensor.
  size_t save() { return count_++; }
  void end_forward() { is_over_ = true; }

  /// Returns the saved tensor `number`; runs the module again when the tensor is missing.
  at::Tensor take(size_t number);
  /// Called in the second run.
  void give(const at::Tensor& tensor) {
    given_.push_back(tensor);
    if (given_.size() == count_) throw GotAll{};
  }

 private:
  static c10::Device device_of(const torch::nn::Module& module,
                               const std::vector<at::Tensor>& inputs) {
    for (const auto& input : inputs) {
      if (input.defined() && !input.is_cpu()) return input.device();
    }
    const auto weights = module.parameters();
    return weights.empty() ? c10::Device(c10::kCPU) : weights.front().device();
  }
  Error error(const std::string& text) const {
    return Error(fmt::format("{}: {}: {}", kModulesKey, path_, text));
  }
  void run_again();

  torch::nn::Module& module_;
  std::string path_;
  std::function<void()> forward_;
  Surroundings surroundings_;
  std::vector<at::Tensor> inputs_;
  std::vector<at::Tensor> weights_;
  std::vector<int64_t> versions_of_inputs_;
  std::vector<int64_t> versions_of_weights_;
  size_t count_ = 0;
  bool is_over_ = false;
  std::mutex mutex_;  ///< A backward pass has one thread per device.
  std::vector<at::Tensor> given_;
};

}  // namespace checkpointing

namespace {

using Call = checkpointing::Region::Call;

/// The call whose module runs on this thread, for the first or the second time.
struct Running {
  std::shared_ptr<Call> first;
  Call* again = nullptr;
};
Running& running() {
  static thread_local Running calls;
  return calls;
}

/// For the first run: keeps nothing.
class Promise : public torch::autograd::SavedVariableHooks {
 public:
  explicit Promise(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  void call_pack_hook(const at::Tensor& /*tensor*/) override { number_ = call_->save(); }
  at::Tensor call_unpack_hook() override { return call_->take(number_); }

 private:
  std::shared_ptr<Call> call_;
  size_t number_ = 0;
};

/// For the second run, whose graph only serves a backward pass inside the module.
class Delivery : public torch::autograd::SavedVariableHooks {
 public:
  explicit Delivery(Call& call) : call_(call) {}
  void call_pack_hook(const at::Tensor& tensor) override {
    tensor_ = tensor.detach();  // the tensor's graph holds this hook
    call_.give(tensor_);
  }
  at::Tensor call_unpack_hook() override { return tensor_; }

 private:
  Call& call_;
  at::Tensor tensor_;
};

/// LibTorch's engine, with hooks that run whenever an operation saves a tensor.
class Engine : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    const Running& calls = running();
    if (calls.again != nullptr) return std::make_unique<Delivery>(*calls.again);
    if (calls.first) return std::make_unique<Promise>(calls.first);
    return nullptr;
  }
};

/// Never destroyed: threads of GPUs outlive `main`.
torch::autograd::Engine& engine_with_hooks() {
  static torch::autograd::Engine& engine = *new Engine;
  return engine;
}

/// LibTorch's threads of GPUs belong to the engine of the process's first backward pass, and no
/// other works later. So where there is a GPU, the first use of an engine chooses this one, whoever
/// makes it. PyTorch's Python module sets its own in the same way, so a process has one of the two.
[[maybe_unused]] const bool is_engine_chosen = [] {
  torch::autograd::set_default_engine_stub([]() -> torch::autograd::Engine& {
    static torch::autograd::Engine& first =
        at::getAccelerator() ? engine_with_hooks() : torch::autograd::Engine::get_base_engine();
    return first;
  });
  return true;
}();

}  // namespace

namespace checkpointing {

std::unordered_map<const torch::nn::Module*, Named>& named_modules() {
  static std::unordered_map<const torch::nn::Module*, Named> modules;
  return modules;
}

void use_engine_with_hooks() { torch::autograd::set_default_engine_stub(engine_with_hooks); }

/// Sets the given surroundings during its lifetime, and restores the previous ones.
class SurroundingsGuard {
 public:
  explicit SurroundingsGuard(const Surroundings& surroundings)
      : before_(surroundings.device()),
        thread_(surroundings.thread()),
        sync_(surroundings.sync_batch_norm()) {
    surroundings.set();
  }
  ~SurroundingsGuard() { before_.set(); }
  SurroundingsGuard(const SurroundingsGuard&) = delete;
  SurroundingsGuard& operator=(const SurroundingsGuard&) = delete;

 private:
  Surroundings before_;
  at::ThreadLocalStateGuard thread_;
  SyncBatchNorm::Scope sync_;
};

/// Keeps the running statistics of a module, which its second run must not change again.
class BuffersGuard {
 public:
  explicit BuffersGuard(const torch::nn::Module& module) {
    const at::NoGradGuard no_grad;
    for (const auto& buffer : module.buffers()) {
      // A tensor on the same data with another version counter: autograd sees no change of the
      // buffer.
      if (buffer.defined()) buffers_.emplace_back(buffer.tensor_data(), buffer.clone());
    }
  }
  ~BuffersGuard() {
    const at::NoGradGuard no_grad;
    try {
      for (const auto& [buffer, value] : buffers_) buffer.copy_(value);
    } catch (const std::exception&) {  // a GPU has failed, which an error tells
    }
  }
  BuffersGuard(const BuffersGuard&) = delete;
  BuffersGuard& operator=(const BuffersGuard&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
};

at::Tensor Region::Call::take(size_t number) {
  const std::lock_guard lock(mutex_);
  if (!is_over_) {
    throw error(
        "its forward has a backward pass of its own, which needs what it saves; leave it "
        "out, or name modules inside of it");
  }
  if (given_.empty() || !given_[number].defined()) run_again();
  // A backward pass needs each tensor once.
  return std::exchange(given_[number], {});
}

void Region::Call::run_again() {
  if (versions_of(inputs_) != versions_of_inputs_) {
    throw error(
        "an input was changed in place after the call, or by it; the backward pass, which "
        "runs the module again, would see other numbers. Change a copy, or leave it out");
  }
  if (versions_of(weights_) != versions_of_weights_) {
    throw error(
        "its weights have changed between the call and the backward pass, which runs it "
        "again. Update them after the backward passes of all losses that depend on them");
  }
  given_.clear();
  given_.reserve(count_);
  const SurroundingsGuard surroundings(surroundings_);
  const BuffersGuard buffers(module_);
  Call* const outer = std::exchange(running().again, this);
  const auto first = std::exchange(running().first, nullptr);
  std::exception_ptr failed;
  try {
    forward_();
  } catch (const GotAll&) {
  } catch (...) {
    failed = std::current_exception();
  }
  running() = {first, outer};
  if (failed) std::rethrow_exception(failed);
  if (given_.size() != count_) {
    throw error(fmt::format(
        "it saved {} tensors for the backward pass, and {} when it ran again: what it does may "
        "depend on its inputs, its weights and LibTorch's random numbers alone. Leave it out",
        count_, given_.size()));
  }
}

bool has_calls() { return was_called.load(std::memory_order_relaxed); }

bool is_due(const torch::nn::Module& module) {
  was_called.store(true, std::memory_order_relaxed);
  auto& modules = named_modules();
  if (modules.empty() || !at::GradMode::is_enabled()) return false;
  const auto found = modules.find(&module);
  if (found == modules.end()) return false;
  found->second.ran = true;
  const Running& calls = running();
  return !calls.first && calls.again == nullptr;
}

Region::Region(torch::nn::Module& module, std::function<void()> forward,
               std::vector<at::Tensor> inputs)
    : call_(std::make_shared<Call>(module, std::move(forward), std::move(inputs))) {
  running().first = call_;
}

Region::~Region() {
  running().first = nullptr;
  call_->end_forward();
}

}  // namespace checkpointing

}  // namespace stepop
