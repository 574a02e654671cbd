#include "runtime/checkpoint/checkpoint_writer.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/formats/safetensors.h"

namespace stepop {
namespace {

/// A thread, for `path`, that no signal is delivered to: those are the main thread's.
template <class Call>
std::thread start_thread(const std::string& path, Call call) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [&] { pthread_sigmask(SIG_SETMASK, &before, nullptr); };
  try {
    std::thread thread(std::move(call));
    restore();
    return thread;
  } catch (const std::system_error& error) {
    restore();
    throw Error(
        fmt::format("cannot start the thread that writes {}: {}", path, error.code().message()));
  }
}

/// Whether `buffer` can take the values of `tensor`.
bool fits(const at::Tensor& buffer, const at::Tensor& tensor) {
  return buffer.scalar_type() == tensor.scalar_type() && buffer.sizes() == tensor.sizes() &&
         (!tensor.is_cuda() || buffer.is_pinned());
}

/// Copies the values of `tensor` into `buffer`. One thread copies as fast as the memory takes it;
/// several, on cores that others want too, wait for each other at every tensor.
void copy_values(const at::Tensor& tensor, at::Tensor& buffer) {
  if (!tensor.is_cpu() || !tensor.is_contiguous()) {
    buffer.copy_(tensor.detach());
  } else if (tensor.nbytes() > 0) {
    std::memcpy(buffer.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string folder, std::function<void()> before_write)
    : folder_(std::move(folder)), before_write_(std::move(before_write)) {}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

std::string CheckpointWriter::save(const Checkpoint& checkpoint, AfterWrite after_write) {
  wait();
  written_.store(false, std::memory_order_relaxed);  // the thread's from here on
  std::string path = folder_ + "/" + checkpoint_name(checkpoint.progress.global_step);
  check_savable(path, checkpoint.tensors);
  copy(checkpoint);
  thread_ =
      start_thread(path, [this, after_write = std::move(after_write)] { write(after_write); });
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
  State buffers = std::exchange(copy_.tensors, {});
  // What was tied in the checkpoint before need not be in this one.
  for (const auto& [name, first] : find_aliases(buffers)) buffers.erase(name);
  const Aliases aliases = find_aliases(checkpoint.tensors);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (aliases.contains(name)) continue;
    at::Tensor buffer = std::move(buffers[name]);
    // Memory that is pinned is what a GPU copies into at full speed.
    if (!buffer.defined() || !fits(buffer, tensor)) {
      buffer = at::empty(tensor.sizes(),
                         at::TensorOptions(tensor.scalar_type()).pinned_memory(tensor.is_cuda()));
    }
    copy_values(tensor, buffer);
    copy_.tensors.emplace(name, std::move(buffer));
  }
  // Tied ones are tied in the copy too, so that they are written once.
  for (const auto& [name, first] : aliases) copy_.tensors.emplace(name, copy_.tensors.at(first));
}

void CheckpointWriter::write(const AfterWrite& after_write) noexcept {
  try {
    if (before_write_) before_write_();
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
