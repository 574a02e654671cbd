// The processes behind a dataset: how they die, what is waited for, and that nothing is left.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/base/interrupt_scope.h"
#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"

namespace stepop {
namespace python_processes_test {

TEST_CASE("a worker that dies is reported with its end, the example and its last lines") {
  const PythonFiles files(kEnds);
  const auto message = [&](const std::string& how) {
    const auto dataset = files.dataset("Ends", "kwargs: {how: " + how + "}");
    batch_of(*dataset, {0, 1});
    std::string said = message_of([&] { batch_of(*dataset, {3, 4, 5, 6}); });
    CHECK(batch_of(*dataset, {0, 1}).size() == 2);  // by another worker
    return said;
  };
  const std::string killed = message("killed");
  CHECK(killed.starts_with("example 5: the Python process "));
  CHECK(
      killed.ends_with(" that read it was ended by signal 9 (Killed); the system kills a process "
                       "that takes too much memory"));
  const std::string segfault = message("segfault");
  CHECK(has(segfault, "example 5: "));
  CHECK(has(segfault,
            " that read it was ended by signal 11 (Segmentation fault)\nFatal Python error: "
            "Segmentation fault\n"));
  CHECK(has(segfault, "my_data.py\", line 4 in segfault"));
  CHECK(message("exits").ends_with(" that read it ended with exit status 3\na last word"));
  CHECK(has(message("interrupted"), "KeyboardInterrupt"));
  // A process that the worker leaves behind holds the worker's socket open.
  CHECK(message("leaves_a_child").ends_with(" that read it ended with exit status 4"));
}

TEST_CASE("a worker that is killed between two batches is reported at the next one") {
  const PythonFiles files(kEnds);
  const auto dataset = files.dataset("Ends", "kwargs: {how: slow}");
  const auto pid = static_cast<pid_t>(number(batch_of(*dataset, {0}), "pid"));
  ::kill(pid, SIGKILL);
  const std::string message = message_of([&] { batch_of(*dataset, {2}); });
  CHECK(has(message, fmt::format("the Python process {} that read it was ended by signal 9", pid)));
  CHECK(number(batch_of(*dataset, {2}), "pid") != pid);
}

TEST_CASE("a process that an example forks and that comes back gives no examples") {
  const PythonFiles files(kEnds);
  const std::string said = errors_of([&] {
    const auto dataset = files.dataset("Ends", "kwargs: {how: returns_twice}");
    for (int i = 0; i < 30; ++i) {
      for (const int64_t first : {0, 5, 9, 15}) {
        const Batch batch = batch_of(*dataset, {first, first + 1});
        REQUIRE(batch["x"][0].item<int64_t>() == first);
        REQUIRE(batch["x"][1].item<int64_t>() == first + 1);
      }
    }
  });
  CHECK(has(said,
            " that example 5 forked came back from the dataset and was ended here; end it "
            "with os._exit(0)\n"));
}

TEST_CASE("a process that the making of a dataset forks and that comes back is no second server") {
  const PythonFiles files(R"(import os

class Made:
    def __init__(self): os.fork()
    def __len__(self): return 20
    def __getitem__(self, index): return {"x": index, "pid": os.getpid()}
)");
  std::string message;
  const std::string said = errors_of([&] {
    const auto dataset = files.dataset("Made");
    const Batch batch = batch_of(*dataset, {3});
    CHECK(number(batch, "x") == 3);
    ::kill(static_cast<pid_t>(number(batch, "pid")), SIGKILL);
    message = message_of([&] { batch_of(*dataset, {4}); });
    CHECK(has(message, fmt::format("the Python process {} that read it was ended by signal 9",
                                   number(batch, "pid"))));
  });
  CHECK(has(said, " that the making of the dataset forked came back from the dataset and "));
}

constexpr const char* kParent = R"(import os

class Parent:
    def __len__(self): return 200000
    def __getitem__(self, index): return {"x": index, "pid": os.getpid(), "parent": os.getppid()}
)";

/// A process that is stopped, and that continues with this object, or after 20 s: what waits for it
/// in vain must not hold the tests.
class Stopped {
 public:
  explicit Stopped(int64_t pid) : pid_(static_cast<pid_t>(pid)) {
    ::kill(pid_, SIGSTOP);
    watch_ = std::thread([this] {
      for (int i = 0; i < 2000 && !is_over_; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      was_needed_ = !is_over_;
      ::kill(pid_, SIGCONT);
    });
  }
  ~Stopped() {
    is_over_ = true;
    watch_.join();
  }
  bool was_needed() const { return was_needed_; }

 private:
  pid_t pid_;
  std::atomic<bool> is_over_ = false, was_needed_ = false;
  std::thread watch_;
};

/// Whether an interruption ends a wait while `pid` is stopped.
bool is_interrupted(int64_t pid, const std::function<void()>& wait) {
  const Stopped stopped(pid);
  int calls = 0;
  const InterruptScope scope([&] {
    if (++calls >= 3) throw Interrupted("enough");
  });
  try {
    wait();
  } catch (const Interrupted&) {
    return !stopped.was_needed();
  } catch (const Error& error) {
    MESSAGE(error.what());
  }
  return false;
}

TEST_CASE("while the process that forks workers is stopped, an interruption ends each wait") {
  const PythonFiles files(kParent);
  const auto dataset = files.dataset("Parent");
  const Batch first = batch_of(*dataset, {0});
  // For how a worker ended.
  ::kill(static_cast<pid_t>(number(first, "pid")), SIGKILL);
  CHECK(is_interrupted(number(first, "parent"), [&] { batch_of(*dataset, {1}); }));
  // For a new worker.
  CHECK(is_interrupted(number(first, "parent"), [&] { batch_of(*dataset, {2}); }));
  // The answers that nobody waited for are not taken for later ones.
  const Batch last = batch_of(*dataset, {3});
  CHECK(number(last, "x") == 3);
  ::kill(static_cast<pid_t>(number(last, "pid")), SIGKILL);
  CHECK(has(message_of([&] { batch_of(*dataset, {4}); }),
            fmt::format("the Python process {} that read it was ended by signal 9",
                        number(last, "pid"))));
}

TEST_CASE("what the process that forks workers does not answer is an error after a time") {
  const PythonFiles files(kParent);
  const auto dataset = files.dataset("Parent", "timeout: 0.5");
  const Batch batch = batch_of(*dataset, {0});
  const auto parent = number(batch, "parent");
  const Stopped stopped(parent);
  ::kill(static_cast<pid_t>(number(batch, "pid")), SIGKILL);
  CHECK(message_of([&] { batch_of(*dataset, {1}); }) ==
        fmt::format("example 0: the Python process {} that read it has ended; how is not known, as "
                    "the process {} that forked it does not answer: it is stopped, or busy",
                    number(batch, "pid"), parent));
  CHECK(message_of([&] { batch_of(*dataset, {2}); })
            .starts_with(fmt::format("the Python process {} that forks workers has not answered "
                                     "for 0.5",
                                     parent)));
  CHECK_FALSE(stopped.was_needed());
}

TEST_CASE("an interruption ends the wait for a worker that takes no request") {
  const PythonFiles files(kParent);
  const auto dataset = files.dataset("Parent");
  const auto pid = number(batch_of(*dataset, {0}), "pid");
  std::vector<int64_t> many(100'000);  // more than the socket holds
  std::iota(many.begin(), many.end(), 0);
  CHECK(is_interrupted(pid, [&] { batch_of(*dataset, many); }));
  CHECK(number(batch_of(*dataset, {7}), "x") == 7);
}

TEST_CASE("an example that takes longer than the timeout is reported with its place") {
  const PythonFiles files(kEnds);
  const auto dataset = files.dataset("Ends", "kwargs: {how: hangs}, timeout: 0.5");
  const auto begin = std::chrono::steady_clock::now();
  const std::string message = message_of([&] { batch_of(*dataset, {4, 5}); });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(message.starts_with("example 5: took longer than 0.5"));
  CHECK(has(message, " s (`timeout`) in the Python process "));
  CHECK(has(message, "my_data.py\", line 15 in hangs"));
  CHECK(batch_of(*dataset, {0}).size() == 1);
  // The time is that of an example, not that of a batch.
  const auto slow = files.dataset("Ends", "kwargs: {how: slow}, timeout: 0.6");
  CHECK(batch_of(*slow, {5, 6, 7, 8, 9, 10}).size() == 6);
}

TEST_CASE("an interruption ends the wait for an example, and the dataset goes on") {
  const PythonFiles files(kEnds);
  const auto dataset = files.dataset("Ends", "kwargs: {how: hangs}");
  int calls = 0;
  {
    const InterruptScope scope([&] {
      if (++calls == 3) throw Interrupted("enough");
    });
    CHECK_THROWS_AS(batch_of(*dataset, {7}), Interrupted);
  }
  CHECK(calls == 3);
  CHECK(batch_of(*dataset, {0}).size() == 1);
}

/// Whether the process ends within some seconds. A dead one may wait for its parent to notice.
bool vanishes(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    std::string state = read_bytes(fmt::format("/proc/{}/stat", pid));
    state = state.substr(std::min(state.size(), state.rfind(')') + 1));
    if (state.empty() || state.starts_with(" Z")) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_CASE("with a dataset all of its processes end") {
  const PythonFiles files(kEnds);
  std::vector<pid_t> pids;
  {
    const auto dataset = files.dataset("Ends", "kwargs: {how: hangs}");
    pids.push_back(static_cast<pid_t>(number(batch_of(*dataset, {0}), "pid")));
    std::thread other([&] { message_of([&] { batch_of(*dataset, {1, 2}); }); });
    other.join();
    CHECK(::kill(pids[0], 0) == 0);
  }
  CHECK(vanishes(pids[0]));
}

constexpr const char* kPool = R"(import multiprocessing, os, time

def double(value): return 2 * value

class Pool:
    """Each of its processes makes semaphores with names."""
    def __init__(self):
        self.context = multiprocessing.get_context("spawn")
        self.lock = self.context.Lock()
        self.pool = None
    def __len__(self): return 10
    def __getitem__(self, index):
        if self.pool is None: self.pool = self.context.Lock(), self.context.Queue()
        if index == 9: time.sleep(100)
        return {"x": index, "pid": os.getpid()}
)";

std::vector<std::string> semaphores() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    if (file.path().filename().string().starts_with("sem.mp-")) names.push_back(file.path());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The semaphores of multiprocessing that are left behind by `call`. Other tests may make some,
/// too.
std::vector<std::string> left_behind(const std::function<void()>& call) {
  const auto before = semaphores();
  call();
  std::vector<std::string> left;
  for (int i = 0; i < 500; ++i) {
    left.clear();
    std::ranges::set_difference(semaphores(), before, std::back_inserter(left));
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return left;
}

TEST_CASE("a dataset that uses multiprocessing leaves no semaphores behind") {
  const PythonFiles files(kPool);
  // After a good end its processes clean up by themselves, and say nothing.
  CHECK(errors_of([&] {
          CHECK(left_behind([&] {
                  batch_of(*files.dataset("Pool"), {1, 2});
                }) == std::vector<std::string>{});
        }) == "");
  // A worker that is killed has multiprocessing's own process clean up.
  CHECK(left_behind([&] {
          const auto dataset = files.dataset("Pool", "timeout: 0.5");
          batch_of(*dataset, {1, 2});
          errors_of([&] { message_of([&] { batch_of(*dataset, {9}); }); });
        }) == std::vector<std::string>{});
}

}  // namespace python_processes_test
}  // namespace stepop
