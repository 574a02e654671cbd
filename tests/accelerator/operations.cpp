// The operations of the device: those of the CPU, on its memory.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/generator.h"
#include "tests/accelerator/graph.h"
#include "tests/accelerator/memory.h"
#include "tests/accelerator/streams.h"

namespace stepop::accelerator {
namespace {

const c10::Device kHere(c10::kHPU, 0);

bool is_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::kHPU;
}

void free_nothing(void* /*address*/) {}

/// A tensor of the CPU with the same memory.
at::Tensor on_host(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  void* address = reachable(storage.data());
  c10::Storage shared(c10::Storage::use_byte_size_t(), storage.nbytes(),
                      c10::DataPtr(address, address, free_nothing, c10::Device(c10::kCPU)),
                      c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(shared), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return made;
}

at::Tensor with_storage(const c10::Storage& storage, const at::Tensor& like) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::HPU), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                    like.storage_offset());
  return made;
}

c10::Storage copied_storage(const c10::Storage& host) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), host.nbytes(), &device_memory(),
                       /*resizable=*/true);
  storage.set_nbytes(host.nbytes());
  if (host.nbytes() > 0) std::memcpy(reachable(storage.data()), host.data(), host.nbytes());
  return storage;
}

/// Memory from before a capture, which may not change by it.
bool is_kept(const at::Tensor& tensor) {
  return is_capturing() && !is_of_capture(tensor.storage().data());
}

/// The same with memory of its own, as large as that of `tensor`.
at::Tensor copied_on_host(const at::Tensor& tensor) {
  const at::Tensor shared = on_host(tensor);
  c10::Storage own(c10::Storage::use_byte_size_t(), shared.storage().nbytes(),
                   c10::GetAllocator(c10::kCPU), /*resizable=*/true);
  if (own.nbytes() > 0) std::memcpy(own.mutable_data(), shared.storage().data(), own.nbytes());
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(own), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return made;
}

/// Writes a result on the host to the memory of `device`, unless it lies there.
void write_back(const at::Tensor& host, const at::Tensor& device) {
  if (!host.defined() || !is_here(device)) return;
  void* target = reachable(device.storage().data());
  if (host.storage().data() == target || host.storage().nbytes() == 0) return;
  std::memcpy(target, host.storage().data(), host.storage().nbytes());
}

void write_back(const c10::IValue& host, const c10::IValue& device) {
  if (host.isTensor()) return write_back(host.toTensor(), device.toTensor());
  if (!host.isTensorList()) return;
  const auto results = host.toTensorVector();
  for (size_t i = 0; i < results.size(); ++i) write_back(results[i], device.toTensorVector()[i]);
}

/// The arguments of one call, as the CPU sees them.
class Call {
 public:
  c10::IValue on_host(const c10::IValue& value) {
    if (value.isTensor()) return tensor(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& each : value.toTensorList()) list.push_back(tensor(each));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor> each : value.toOptionalTensorList()) {
        list.push_back(each && each->defined() ? std::optional(tensor(*each)) : each);
      }
      return list;
    }
    if (value.isDevice()) return c10::Device(c10::kCPU);
    if (value.isGenerator()) return generator(value.toGenerator());
    return value;
  }

  c10::IValue on_device(const c10::IValue& value) {
    if (value.isTensor()) return result(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorList()) list.push_back(result(each));
    return list;
  }

  /// What the operation did to the shapes of its arguments, and where it made them larger.
  void take_back_shapes() {
    for (auto& [device, host, address] : arguments_) {
      c10::TensorImpl* impl = device.unsafeGetTensorImpl();
      if (host.storage().data() != address ||
          host.storage().nbytes() != device.storage().nbytes()) {
        c10::Storage larger = copied_storage(host.storage());
        device.storage().set_nbytes(larger.nbytes());
        device.storage().set_data_ptr(std::move(larger.mutable_data_ptr()));
      }
      if (host.sizes() != device.sizes() || host.strides() != device.strides() ||
          host.storage_offset() != device.storage_offset()) {
        impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
      }
    }
  }

 private:
  struct Argument {
    at::Tensor device;
    at::Tensor host;
    const void* address;  ///< Of the host's memory before the call.
  };

  at::Tensor tensor(const at::Tensor& given) {
    if (!is_here(given)) return given;
    for (const auto& [device, host, address] : arguments_) {
      if (device.is_same(given)) return host;
    }
    const at::Tensor host = is_kept(given) ? copied_on_host(given) : accelerator::on_host(given);
    return arguments_.emplace_back(Argument{given, host, host.storage().data()}).host;
  }

  static at::Generator generator(const at::Generator& given) {
    static const bool is_shared = std::getenv(kSharesRandom) != nullptr;
    if (is_shared) return at::detail::getDefaultCPUGenerator();
    const auto* own = dynamic_cast<const DeviceGenerator*>(given.unsafeGetGeneratorImpl());
    return own == nullptr ? given : own->numbers();
  }

  at::Tensor result(const at::Tensor& made) {
    if (!made.defined() || !made.device().is_cpu()) return made;
    for (const auto& [device, host, address] : arguments_) {
      if (host.is_same(made)) return device;
    }
    for (const auto& [device, host, address] : arguments_) {
      if (host.storage().unsafeGetStorageImpl() == made.storage().unsafeGetStorageImpl()) {
        return with_storage(device.storage(), made);
      }
    }
    return with_storage(copied_storage(made.storage()), made);
  }

  std::vector<Argument> arguments_;
};

/// Operations with tensors as results whose sizes the host has to know.
bool has_sizes_of_its_values(const std::string& name) {
  static const std::set<std::string> kNames = {
      "aten::nonzero",    "aten::masked_select",      "aten::_unique2",
      "aten::unique_dim", "aten::unique_consecutive", "aten::repeat_interleave"};
  return kNames.contains(name);
}

/// Calls the operation of the CPU with the arguments at the end of `stack`, in whose place it
/// leaves its results, which are on the host.
void call_on_host(const c10::OperatorHandle& op, Call& call, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    const bool is_generator = schema.arguments()[i - (stack->size() - count)].name() == "generator";
    c10::IValue& value = (*stack)[i];
    value = call.on_host(is_generator && value.isNone() ? c10::IValue(default_generator()) : value);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  call.take_back_shapes();
}

void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  drain(current_stream());
  Call call;
  const torch::jit::Stack given(stack->end() - static_cast<ptrdiff_t>(schema.arguments().size()),
                                stack->end());
  call_on_host(op, call, stack);
  bool is_known = false;
  const size_t results = schema.returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    is_known |= value.isBool() || value.isInt() || value.isDouble();
    value = call.on_device(value);
  }
  is_known &= schema.name() != "aten::_fused_sdp_choice";  // of shapes alone
  if (is_known || has_sizes_of_its_values(schema.name())) count_wait(schema.name());
  record_work(
      [op, given,
       made = torch::jit::Stack(stack->end() - static_cast<ptrdiff_t>(results), stack->end())] {
        Call again;
        torch::jit::Stack values = given;
        call_on_host(op, again, &values);
        for (size_t i = 0; i < made.size(); ++i) write_back(values[i], made[i]);
      });
}

at::Tensor make_empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                      std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                      std::optional<bool> /*pin*/, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &device_memory(),
                                   c10::DispatchKeySet(c10::DispatchKey::HPU),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor make_empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                              std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout> /*layout*/,
                              std::optional<at::Device> /*device*/, std::optional<bool> /*pin*/) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &device_memory(),
      c10::DispatchKeySet(c10::DispatchKey::HPU), c10::dtype_or_default(dtype));
}

/// Copies the values once the stream comes to it. As with CUDA, memory of the host has to be pinned
/// for that; any other copy waits.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const bool is_inside = is_here(from) && is_here(to);
  const at::Tensor source = is_here(from) ? on_host(from) : from;
  const at::Tensor target = is_here(to) ? on_host(to) : to;
  const at::Tensor& host = is_here(from) ? to : from;
  const bool is_behind = !is_inside && non_blocking && is_pinned(host.storage().data());
  if (is_capturing() && (is_inside || is_behind)) {
    const auto copy = [from, to] {
      (is_here(to) ? on_host(to) : to).copy_(is_here(from) ? on_host(from) : from);
    };
    const at::AutoDispatchBelowADInplaceOrView without_autograd;
    if (is_here(to) && !is_kept(to)) copy();
    record_work(copy);
    return to;
  }
  if (is_behind) {
    count_copy_behind(current_stream());
    enqueue(current_stream(), [source, target, host] {
      delay_copy();
      const at::AutoDispatchBelowADInplaceOrView without_autograd;
      target.copy_(source);
    });
    return to;
  }
  drain(current_stream());
  if (!is_inside) count_wait(is_here(from) ? "copy to host" : "copy from host");
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  target.copy_(source);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar value_of(const at::Tensor& tensor) {
  count_wait("item");
  drain(current_stream());
  return on_host(tensor).item();
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                       c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  drain(current_stream());
  const auto compute = [=, stride = stride.vec(), padding = padding.vec(),
                        dilation = dilation.vec(), output_padding = output_padding.vec()] {
    const bool has_bias = bias && bias->defined();
    return at::convolution_symint(on_host(input), on_host(weight),
                                  has_bias ? std::optional(on_host(*bias)) : std::nullopt, stride,
                                  padding, dilation, transposed, output_padding, groups);
  };
  const at::Tensor computed = compute();
  const at::Tensor made = with_storage(copied_storage(computed.storage()), computed);
  record_work([=] { write_back(compute(), made); });
  return made;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
    bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups,
    std::array<bool, 3> mask) {
  drain(current_stream());
  const int64_t channels = transposed ? weight.size(1) * groups.expect_int() : weight.size(0);
  const auto compute = [=, stride = stride.vec(), padding = padding.vec(),
                        dilation = dilation.vec(), output_padding = output_padding.vec()] {
    const auto [a, b, c] = at::convolution_backward_symint(
        on_host(gradient), on_host(input), on_host(weight), c10::SymIntArrayRef{channels}, stride,
        padding, dilation, transposed, output_padding, groups, mask);
    return std::array{a, b, c};
  };
  std::array<at::Tensor, 3> made = compute();
  for (auto& each : made) {
    if (each.defined()) each = with_storage(copied_storage(each.storage()), each);
  }
  record_work([=] {
    const std::array<at::Tensor, 3> again = compute();
    for (size_t i = 0; i < again.size(); ++i) write_back(again[i], made[i]);
  });
  return {made[0], made[1], made[2]};
}

void record(at::Tensor& tensor, at::Stream stream) {
  record_stream(tensor.storage().mutable_data(), stream.id());
}

}  // namespace

const at::Generator& default_generator() {
  static const auto& made = *new at::Generator(at::make_generator<DeviceGenerator>());
  return made;
}

TORCH_LIBRARY_IMPL(_, HPU, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
}

TORCH_LIBRARY_IMPL(aten, HPU, library) {
  library.impl("empty.memory_format", make_empty);
  library.impl("empty_strided", make_empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", value_of);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
  library.impl("record_stream", record);
}

}  // namespace stepop::accelerator
