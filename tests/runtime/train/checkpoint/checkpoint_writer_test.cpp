#include "runtime/train/checkpoint/checkpoint_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/system/file_calls.h"
#include "tests/huge_stacks.h"
#include "tests/message_of.h"
#include "tests/runtime/train/checkpoint/examples.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace checkpoint_writer_test {

using Names = std::vector<std::string>;

Checkpoint checkpoint_at(int64_t step, State tensors) {
  Checkpoint checkpoint;
  checkpoint.tensors = std::move(tensors);
  checkpoint.progress.global_step = step;
  checkpoint.config = "a: 1\n";
  return checkpoint;
}

/// While it lives, a write waits while the gate is closed and fails while the disk is full.
class TestedDisk : public FileCalls {
 public:
  ssize_t write(int file, const void* data, size_t size) override {
    while (gate_is_closed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!is_full) return FileCalls::write(file, data, size);
    errno = ENOSPC;
    return -1;
  }

  std::atomic<bool> gate_is_closed = false;
  std::atomic<bool> is_full = false;

 private:
  FileCallsOverride override_{*this};
};

int64_t count_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST_CASE("a file that is written behind the loop is the one that save_checkpoint writes") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "plain");
  State tensors = examples();
  tensors["model.turned"] = tensors["model.tied"] = tensors.at("transposed");
  const Checkpoint checkpoint = checkpoint_at(3, tensors);
  CheckpointWriter writer(folder.path());
  const std::string path = writer.save(checkpoint);
  writer.wait();
  CHECK(path == folder / "model-3.safetensors");
  CHECK(read_bytes(path) == read_bytes(save_checkpoint(folder / "plain", checkpoint)));
  CHECK(run_peer("check_checkpoint", path) == 0);
}

TEST_CASE("the loop goes on while a file is written, and what it changes is not in it") {
  const ScratchFolder folder;
  const at::Tensor weight = at::ones({1000});
  TestedDisk disk;
  {
    CheckpointWriter writer(folder.path());
    disk.gate_is_closed = true;
    writer.save(checkpoint_at(1, {{"w", weight}}));
    weight.zero_();
    writer.check();
    CHECK(folder.names() != Names{"model-1.safetensors"});
    disk.gate_is_closed = false;
  }  // which waits
  CHECK(folder.names() == Names{"model-1.safetensors"});
  CHECK(differences(load_checkpoint(folder / "model-1.safetensors").tensors,
                    {{"w", at::ones({1000})}}) == "");
}

TEST_CASE("a second checkpoint waits for the first, and takes its memory") {
  const ScratchFolder folder;
  const at::Tensor weight = at::ones({1000});
  TestedDisk disk;
  CheckpointWriter writer(folder.path());
  disk.gate_is_closed = true;
  writer.save(checkpoint_at(1, {{"w", weight}}));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    disk.gate_is_closed = false;
  });
  weight.zero_();
  writer.save(checkpoint_at(2, {{"w", weight}}));
  CHECK(std::filesystem::exists(folder / "model-1.safetensors"));
  opener.join();
  writer.wait();
  CHECK(load_checkpoint(folder / "model-1.safetensors").tensors.at("w").sum().item<float>() ==
        1000);
  CHECK(load_checkpoint(folder / "model-2.safetensors").tensors.at("w").sum().item<float>() == 0);
}

TEST_CASE("tensors may come, go, change their type and shape, tie and untie between checkpoints") {
  const ScratchFolder folder;
  CheckpointWriter writer(folder.path());
  const at::Tensor a = at::arange(6, at::kFloat);
  const at::Tensor b = at::arange(6, at::kFloat).neg();
  const std::vector<State> states = {
      {{"a", a}, {"b", b}},
      {{"a", a}, {"b", a}},
      {{"a", a}, {"b", b}},
      {{"a", a.view({2, 3})}, {"c", b}},
      {{"a", a.view({2, 3}).t()}, {"b", b.to(at::kHalf)}},
      {{"0", a}, {"a", a}, {"b", a.view({3, 2})}},
      {},
      {{"a", at::zeros({0, 3})}, {"b", at::ones({})}},
  };
  for (size_t i = 0; i < states.size(); ++i) {
    const std::string path = writer.save(checkpoint_at(static_cast<int64_t>(i), states[i]));
    writer.wait();
    CAPTURE(i);
    CHECK(differences(load_checkpoint(path).tensors, states[i]) == "");
  }
}

TEST_CASE("a failed write is told by the next look at it, once, and harms nothing") {
  const ScratchFolder folder;
  TestedDisk disk;
  CheckpointWriter writer(folder.path());
  const State state = {{"w", at::ones({10})}};
  writer.save(checkpoint_at(1, state));
  writer.wait();
  disk.is_full = true;
  const std::string reason =
      "cannot write " + (folder / "model-2.safetensors.tmp: No space left on device");
  SUBCASE("check") {
    writer.save(checkpoint_at(2, state));
    std::string message = "no error";
    for (int i = 0; i < 10000 && message == "no error"; ++i) {
      message = message_of([&] { writer.check(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(message == reason);
  }
  SUBCASE("wait") {
    writer.save(checkpoint_at(2, state));
    CHECK(message_of([&] { writer.wait(); }) == reason);
  }
  SUBCASE("the next save") {
    writer.save(checkpoint_at(2, state));
    CHECK(message_of([&] { writer.save(checkpoint_at(3, state)); }) == reason);
  }
  SUBCASE("nobody looks") {
    CheckpointWriter other(folder.path());
    other.save(checkpoint_at(2, state));
  }
  writer.check();
  writer.wait();
  CHECK(folder.names() == Names{"model-1.safetensors"});
  CHECK(verify_checkpoint(folder / "model-1.safetensors") == std::nullopt);
  disk.is_full = false;
  writer.save(checkpoint_at(4, state));
  writer.wait();
  CHECK(folder.names() == Names{"model-1.safetensors", "model-4.safetensors"});
}

TEST_CASE("a tensor that cannot be stored is refused at once") {
  const ScratchFolder folder;
  CheckpointWriter writer(folder.path());
  const std::string begin = "cannot save " + (folder / "model-1.safetensors: ");
  CHECK(message_of([&] {
          writer.save(checkpoint_at(1, {{"x", at::Tensor()}}));
        }) == begin + "tensor \"x\" is undefined");
  CHECK(message_of([&] {
          writer.save(checkpoint_at(1, {{"x", at::ones({2}, at::kComplexFloat)}}));
        }) == begin + "tensor \"x\" is of type ComplexFloat, which the format cannot hold");
  CHECK(folder.names().empty());
}

TEST_CASE("what follows a write runs behind it, once the file is there") {
  const ScratchFolder folder;
  CheckpointWriter writer(folder.path());
  const State state = {{"w", at::ones({10})}};
  std::string written;
  std::optional<std::string> damage = "never looked at";
  const std::string path = writer.save(checkpoint_at(1, state), [&](const std::string& file) {
    written = file;
    damage = verify_checkpoint(file);
  });
  writer.wait();
  CHECK(written == path);
  CHECK(damage == std::nullopt);

  writer.save(checkpoint_at(2, state), [](const std::string&) { throw Error("cannot sweep"); });
  CHECK(message_of([&] { writer.wait(); }) == "cannot sweep");
  CHECK(std::filesystem::exists(folder / "model-2.safetensors"));
}

TEST_CASE("a checkpoint is told once it is safe, and once") {
  const ScratchFolder folder;
  CheckpointWriter writer(folder.path());
  CHECK_FALSE(writer.take_written());
  const std::string path = writer.save(Checkpoint());
  writer.wait();
  CHECK(writer.take_written() == path);
  CHECK_FALSE(writer.take_written());
}

TEST_CASE("a thread that cannot start is told with what it was to write") {
  const ScratchFolder folder;
  CheckpointWriter writer(folder.path());
  const std::string message = [&] {
    const HugeStacks no_threads;
    return message_of([&] { writer.save(checkpoint_at(7, {})); });
  }();
  CHECK(message.starts_with("cannot start the thread that writes " +
                            (folder / "model-7.safetensors") +
                            ": Resource temporarily unavailable; ulimit -u"));
  writer.save(checkpoint_at(8, {}));
  writer.wait();
  CHECK(folder.names() == Names{"model-8.safetensors"});
}

TEST_CASE("the writer has one thread, none of LibTorch's, and takes no signals") {
  const ScratchFolder folder;
  // Large, and not contiguous: what LibTorch would copy with several threads.
  const State state = {{"w", at::ones({1 << 10, 1 << 11}).t()}};
  CheckpointWriter writer(folder.path());
  writer.save(checkpoint_at(1, state));
  writer.wait();
  const int64_t before = count_threads();
  int64_t during = 0;
  bool is_blocked = false;
  writer.save(checkpoint_at(2, state), [&](const std::string&) {
    during = count_threads();
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    is_blocked = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 1;
  });
  writer.wait();
  CHECK(during == before + 1);
  CHECK(is_blocked);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  CHECK(sigismember(&blocked, SIGTERM) == 0);
}

}  // namespace checkpoint_writer_test
}  // namespace stepop
