#include "runtime/train/run/device.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "runtime/core/components/foreign_names.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/run/thread_wait.h"

// GCC's OpenMP, whose threads LibTorch uses; Clang's OpenMP also has this function. Without
// -fopenmp at::parallel_for would call its function in this thread alone.
extern "C" void GOMP_parallel(void (*call)(void*), void* data, unsigned threads, unsigned flags)
    __attribute__((weak));

namespace stepop {
namespace {

void set_flush_denormal(void* on) { at::globalContext().setFlushDenormal(on != nullptr); }

/// Applies to this thread, to threads that it starts later, and to LibTorch's threads.
void flush_denormals(const Config& config) {
  if (!config.has("flush_denormals")) return;
  bool on = config.get<bool>("flush_denormals");
  if (!at::globalContext().setFlushDenormal(on) && on) {
    throw config.error("flush_denormals", "this processor cannot; leave it out, or false");
  }
  if (GOMP_parallel == nullptr) return;
  GOMP_parallel(set_flush_denormal, on ? &on : nullptr,
                static_cast<unsigned>(at::get_num_threads()), 0);
}

/// What `matmul_precision` and `cudnn_benchmark` say.
void set_gpu_arithmetic(const Config& config) {
  if (config.has("matmul_precision")) {
    const std::string precision = config.get<std::string>("matmul_precision");
    if (precision != "highest" && precision != "high" && precision != "medium") {
      throw config.error("matmul_precision", fmt::format("expected highest, high or medium, found "
                                                         "\"{}\"",
                                                         precision));
    }
    at::globalContext().setFloat32MatmulPrecision(precision);
  }
  if (config.has("cudnn_benchmark")) {
    at::globalContext().setBenchmarkCuDNN(config.get<bool>("cudnn_benchmark"));
  }
}

/// Another accelerator that this LibTorch knows, `xpu` or `mps:0`; nothing for any other name.
std::optional<c10::Device> read_accelerator(const std::string& name, int local_rank) {
  const auto type = at::getAccelerator(/*checked=*/false);
  if (!type || *type == c10::kCUDA) return std::nullopt;
  const std::string known = c10::DeviceTypeName(*type, /*lower_case=*/true);
  if (!name.starts_with(known)) return std::nullopt;
  const std::string rest = name.substr(known.size());
  const int64_t count = at::accelerator::deviceCount();
  const int64_t index = rest.empty()            ? local_rank % std::max<int64_t>(count, 1)
                        : rest.starts_with(':') ? list_index(rest.substr(1))
                                                : -1;
  if (index < 0 || index >= count) return std::nullopt;
  return c10::Device(*type, static_cast<c10::DeviceIndex>(index));
}

}  // namespace

c10::Device read_device(const Config& config, int local_rank) {
  const auto name = own_key<std::string>(config, "device");
  if (const auto other = read_accelerator(name, local_rank)) return *other;
  const int gpus = at::hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (name == "cpu" || (name == "auto" && gpus == 0)) return c10::kCPU;
  const std::string number = name.starts_with("cuda:") ? name.substr(5) : "";
  const int64_t index =
      name == "auto" || name == "cuda" ? local_rank % std::max(gpus, 1) : list_index(number);
  if (index < 0) {
    throw config.error("device", fmt::format("expected auto, cpu, cuda or cuda:<number>, found "
                                             "\"{}\"{}",
                                             name, foreign_value_hint("device", Value(name))));
  }
  if (index >= gpus) {
    const bool has_cuda = at::CUDAHooksRegistry()->Has("CUDAHooks");
    throw config.error(
        "device",
        gpus > 0 ? fmt::format("\"{}\" is not there: there are cuda:0 to cuda:{}", name, gpus - 1)
        : has_cuda
            ? fmt::format("\"{}\" is not available: LibTorch has CUDA and finds no GPU with a "
                          "driver (nvidia-smi lists these); use cpu or auto",
                          name)
            : fmt::format("\"{}\" is not available: this LibTorch has no CUDA; use cpu or auto",
                          name));
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

std::optional<bool> read_onednn(const Config& config) {
  if (!config.has("onednn")) {
    config.note_default("onednn", own_default("onednn"));
    return std::nullopt;
  }
  const Value value = *config.peek("onednn");
  if (value == Value("auto")) {
    config.claim("onednn");
    return std::nullopt;
  }
  if (value.is_text()) {
    throw config.error("onednn",
                       fmt::format("expected auto, true or false, found \"{}\"", value.as_text()));
  }
  return config.get<bool>("onednn");
}

void apply_backend_settings(const Config& config, int local_processes) {
  if (config.has("num_threads")) {
    constexpr int64_t kMost = 1024;  // more threads would leave none to other programs
    at::set_num_threads(static_cast<int>(config.get_between("num_threads", 1, kMost, 1)));
  } else {
    if (std::getenv("OMP_NUM_THREADS") == nullptr) {
      const auto usable = static_cast<int>(usable_processors());
      const int all = std::min(at::get_num_threads(), usable);
      const int own = std::max(1, all / local_processes);
      if (own != at::get_num_threads()) at::set_num_threads(own);
    }
    config.note_default("num_threads", at::get_num_threads());
  }
  if (config.has("deterministic")) {
    const bool on = config.get<bool>("deterministic");
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
    at::globalContext().setDeterministicCuDNN(on);
  } else {
    config.note_default("deterministic", at::globalContext().deterministicAlgorithms());
  }
  set_gpu_arithmetic(config);
  static const bool has_onednn = at::globalContext().userEnabledMkldnn();
  at::globalContext().setUserEnabledMkldnn(read_onednn(config).value_or(has_onednn));
  flush_denormals(config);
  // Both keys were handled when the process began.
  read_thread_wait(config);
  if (config.has("processes")) config.get_between("processes", 1, kMostProcesses, 1);
}

void synchronize(const c10::Device& device) {
  if (!device.is_cpu())
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

std::string describe_device(const c10::Device& device) {
  if (!device.is_cpu()) return device.str();
  const int threads = at::get_num_threads();
  const std::string limit = processor_limit();
  return fmt::format("cpu, {} thread{}{}, oneDNN {}", threads, threads == 1 ? "" : "s",
                     limit.empty() ? "" : " in " + limit,
                     at::globalContext().userEnabledMkldnn() ? "on" : "off");
}

}  // namespace stepop
