#include "runtime/train/checkpoint/checkpoint_writer.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>
#include <optional>
#include <utility>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/system/start_thread.h"

namespace stepop {
namespace {

/// Whether `buffer` can take the values of `tensor`.
bool fits(const at::Tensor& buffer, const at::Tensor& tensor) {
  return buffer.scalar_type() == tensor.scalar_type() && buffer.sizes() == tensor.sizes() &&
         (tensor.is_cpu() || buffer.is_pinned());
}

/// Copies the values of `tensor` into `buffer`; those of a GPU may still be underway. One thread is
/// as fast as the memory; several threads, on cores that others also want, would wait for each
/// other at every tensor.
void copy_values(const at::Tensor& tensor, at::Tensor& buffer) {
  if (!tensor.is_cpu() || !tensor.is_contiguous()) {
    buffer.copy_(tensor.detach(), /*non_blocking=*/buffer.is_pinned());
  } else if (tensor.nbytes() > 0) {
    std::memcpy(buffer.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string folder, BeforeWrite before_write)
    : folder_(std::move(folder)), before_write_(std::move(before_write)) {}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

std::string CheckpointWriter::save(const Checkpoint& checkpoint, AfterWrite after_write) {
  wait();
  written_.store(false, std::memory_order_relaxed);  // from now on it belongs to the thread
  std::string path = folder_ + "/" + checkpoint_name(checkpoint.progress.global_step);
  check_savable(path, checkpoint.tensors);
  copy(checkpoint);
  thread_ = start_thread("writes " + path,
                         [this, after_write = std::move(after_write)] { write(after_write); });
  return path;
}

std::optional<std::string> CheckpointWriter::take_written() {
  if (!written_.load(std::memory_order_acquire)) return std::nullopt;
  written_.store(false, std::memory_order_relaxed);
  return written_path_;
}

void CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  failed_.store(false, std::memory_order_relaxed);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CheckpointWriter::copy(const Checkpoint& checkpoint) {
  copy_.progress = checkpoint.progress;
  copy_.config = checkpoint.config;
  copy_.made_by = checkpoint.made_by;
  copy_.networks = checkpoint.networks;
  State buffers = std::exchange(copy_.tensors, {});
  // Tensors that were tied in the previous checkpoint may be separate in this one.
  for (const auto& [name, first] : find_aliases(buffers)) buffers.erase(name);
  const Aliases aliases = find_aliases(checkpoint.tensors);
  std::optional<at::Device> gpu;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (aliases.contains(name)) continue;
    at::Tensor buffer = std::move(buffers[name]);
    // A GPU copies at full speed only into pinned memory.
    if (!buffer.defined() || !fits(buffer, tensor)) {
      buffer = at::empty(tensor.sizes(),
                         at::TensorOptions(tensor.scalar_type()).pinned_memory(!tensor.is_cpu()));
    }
    copy_values(tensor, buffer);
    if (!tensor.is_cpu()) gpu = tensor.device();
    copy_.tensors.emplace(name, std::move(buffer));
  }
  if (gpu) {  // waits once for all of them
    c10::impl::VirtualGuardImpl(gpu->type()).getStream(*gpu).synchronize();
  }
  // Tied tensors are also tied in the copy, so that they are written once.
  for (const auto& [name, first] : aliases) copy_.tensors.emplace(name, copy_.tensors.at(first));
}

void CheckpointWriter::write(const AfterWrite& after_write) noexcept {
  try {
    if (before_write_) before_write_(copy_);
    const std::string path = save_checkpoint(folder_, copy_);
    if (after_write) after_write(path);
    written_path_ = path;
    written_.store(true, std::memory_order_release);
  } catch (...) {
    failure_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
}

}  // namespace stepop
