#include "eval_out/hdf5/hdf5_probe.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/programs/child_process.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace hdf5_probe_test {

std::string message(const std::string& path, const InterruptCheck& interrupt = {}) {
  const Hdf5Lock lock;
  return message_of([&] { probe_hdf5(path, interrupt); });
}

TEST_CASE("what is sound passes; what the library refuses is reported as it is") {
  for (const char* name : {"plain", "later"}) {
    CHECK(message(STEPOP_SOURCE_DIR "/tests/data/hdf5/" + std::string(name) + ".h5") == "no error");
  }
  const ScratchFolder folder;
  const std::string text = folder.write("text.h5", "no HDF5");
  CHECK(message(text) == "cannot read " + text + ": it is not an HDF5 file");
}

TEST_CASE("what the library crashes on is an error with the path") {
  // The last byte of a heap of links: HDF5 1.10.8 frees what it did not allocate.
  std::string bytes = read_bytes(STEPOP_SOURCE_DIR "/tests/data/hdf5/later.h5");
  REQUIRE(bytes.size() == 16'589);
  bytes[16'538] = 126;
  const ScratchFolder folder;
  const std::string path = folder.write("a.h5", bytes);
  CHECK(message(path).find(path) != std::string::npos);
}

TEST_CASE("it is another program that tries a file, which loads no LibTorch") {
  const std::string program = STEPOP_BINARY_DIR "/stepop_probe_hdf5";
  const ChildResult result =
      run_child({program, STEPOP_SOURCE_DIR "/tests/data/hdf5/plain.h5", "5", "2000000000"});
  CHECK(result.out == kProbePassed);
  const ChildResult libraries = run_child({"ldd", program});
  CHECK(libraries.out.find("libhdf5") != std::string::npos);
  CHECK(libraries.out.find("libtorch") == std::string::npos);
}

TEST_CASE("a probe leaves no child, and no child takes what other threads allocate") {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) std::vector<std::string>(100, std::string(1000, 'x'));
    });
  }
  for (int i = 0; i < 20; ++i) {
    REQUIRE(message(STEPOP_SOURCE_DIR "/tests/data/hdf5/plain.h5") == "no error");
  }
  is_over = true;
  for (auto& thread : threads) thread.join();
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a file that cannot be tried is refused") {
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const std::string path = STEPOP_SOURCE_DIR "/tests/data/hdf5/plain.h5";
  const std::string refused = message(path);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
  CHECK(refused.starts_with("cannot read " + path +
                            ": no program can try whether it does harm: cannot make a pipe: "));
}

TEST_CASE("an interrupt ends the wait, and the child") {
  CHECK(message(STEPOP_SOURCE_DIR "/tests/data/hdf5/plain.h5",
                [] { throw Interrupted("enough"); }) == "enough");
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace hdf5_probe_test
}  // namespace stepop
