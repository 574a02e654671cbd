// The processes behind a dataset: random numbers, deaths, time, what they print, and what they
// keep.

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fcntl.h>
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
namespace python_worker_test {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What this process and its children write to standard error during `call`.
std::string errors_of(const std::function<void()>& call) {
  const ScratchFolder folder;
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open(folder.path("err").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(file, STDERR_FILENO);
  ::close(file);
  call();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  return read_bytes(folder / "err");
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

int64_t number(const Batch& batch, const std::string& key) { return batch[key][0].item<int64_t>(); }

constexpr const char* kRandom = R"(import random
import numpy

def lightly(index): return index % 7 and 0.0 or random.random()
def looks(index): return float(torch.initial_seed() % 1000)
def restores(index):
    with torch.random.fork_rng(devices=[]): return torch.rand(1).item()
def puts_back(index):
    state = numpy.random.get_state()
    drawn = numpy.random.rand()
    numpy.random.set_state(state)
    return drawn
def several(index): return random.random() + numpy.random.normal()
def fails_by_chance(index):
    drawn = random.random()
    if drawn < 0.2: raise ValueError("unlucky")
    return drawn

class Random:
    def __init__(self, draw):
        if draw in ("looks", "restores"):
            global torch
            import torch
        self.draw = globals()[draw]
    def __len__(self): return 100
    def __getitem__(self, index): return {"x": self.draw(index)}
)";

/// An example's value or its error, read with the others of its batch or by itself.
std::vector<std::string> values_of(const Dataset& dataset, int64_t batch_size) {
  std::vector<std::string> values;
  for (int64_t first = 0; first < 60; first += batch_size) {
    std::vector<int64_t> indices;
    std::vector<Random> randoms;
    for (int64_t i = first; i < first + batch_size; ++i) {
      indices.push_back(i);
      randoms.emplace_back(static_cast<uint64_t>(1000 + i));
    }
    try {
      const Batch batch = load_batch(dataset, indices, randoms);
      for (int64_t i = 0; i < batch_size; ++i) {
        values.push_back(fmt::format("{:.17g}", batch["x"][i].item<double>()));
      }
    } catch (const Error&) {
      values.resize(values.size() + static_cast<size_t>(batch_size), "failed");
    }
  }
  return values;
}

TEST_CASE("an example has the same random numbers in any batch, by any worker") {
  const PythonFiles files(kRandom);
  for (const std::string draw : {"lightly", "looks", "restores", "puts_back", "several"}) {
    CAPTURE(draw);
    const auto config = "kwargs: {draw: " + draw + "}";
    const auto values = values_of(*files.dataset("Random", config), 1);
    CHECK(values_of(*files.dataset("Random", config), 12) == values);
    CHECK(std::count(values.begin(), values.end(), values[7]) <= 1);
  }
}

TEST_CASE("an example fails by its own random numbers alone, not by those of its neighbours") {
  const PythonFiles files(kRandom);
  const auto values = values_of(*files.dataset("Random", "kwargs: {draw: fails_by_chance}"), 1);
  const auto together = values_of(*files.dataset("Random", "kwargs: {draw: fails_by_chance}"), 2);
  const auto failed = std::count(values.begin(), values.end(), "failed");
  CHECK(failed > 3);
  CHECK(failed < 30);
  for (size_t i = 0; i < values.size(); i += 2) {
    const bool fails = values[i] == "failed" || values[i + 1] == "failed";
    CHECK(together[i] == (fails ? "failed" : values[i]));
    CHECK(together[i + 1] == (fails ? "failed" : values[i + 1]));
  }
}

constexpr const char* kOwn = R"(import numpy

class Own:
    def __init__(self): self.random = numpy.random.default_rng(0)
    def __len__(self): return 10
    def __getitem__(self, index): return {"x": self.random.random(), "y": index, "z": {"name": "n"}}
)";

TEST_CASE("a generator of the dataset's own is said, once") {
  const PythonFiles files(kOwn);
  const std::string said = errors_of([&] {
    const auto dataset = files.dataset("Own");
    for (int i = 0; i < 3; ++i) batch_of(*dataset, {3, 4});
  });
  CHECK(said ==
        "data: example 3 was read twice with the same seeds and differs in x: its random numbers "
        "do not come from random, numpy.random or torch. Resumes and other numbers of workers give "
        "other examples. Seed its generator in __getitem__, such as "
        "numpy.random.default_rng(numpy.random.randint(2**31)).\n");
}

constexpr const char* kEnds = R"(import ctypes, os, signal, subprocess, sys, time
import numpy

def segfault(index): ctypes.string_at(0)
def killed(index): os.kill(os.getpid(), signal.SIGKILL)
def exits(index):
    print("a last word")
    os._exit(3)
def leaves_a_child(index):
    child = os.fork()
    if child == 0:
        time.sleep(20)
        os._exit(0)
    os._exit(4)
def hangs(index): time.sleep(100)
def slow(index): time.sleep(0.15)
def interrupted(index): raise KeyboardInterrupt
def returns_twice(index): os.fork()

class Ends:
    def __init__(self, how, at=5): self.how, self.at = globals()[how], at
    def __len__(self): return 20
    def __getitem__(self, index):
        if index >= self.at: self.how(index)
        return {"x": index, "pid": os.getpid()}
)";

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

constexpr const char* kPrints = R"(import sys
import numpy

print("imported", __name__)

class Prints:
    def __init__(self): print("built", file=sys.stderr)
    def __len__(self): return 1000
    def __getitem__(self, index):
        print("0 %\r50 %\rreads", index)
        return {"x": index, "line": sys.stdin.readline()}

if __name__ == "__main__":
    raise SystemExit("not a program")
)";

TEST_CASE("what a dataset prints is shown with the dataset's place, up to 40 lines") {
  const PythonFiles files(kPrints);
  std::string input;
  const std::string printed = errors_of([&] {
    const auto dataset = files.dataset("Prints");
    input = batch_of(*dataset, {7, 8}).text("line")[1];
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  CHECK(input == "");  // nothing is on its standard input
  CHECK(printed.starts_with("data: imported my_data\ndata: built\ndata: reads 7\n"));
  const std::string many = errors_of([&] {
    const auto dataset = files.dataset("Prints");
    for (int64_t i = 0; i < 100; ++i) batch_of(*dataset, {i});
  });
  CHECK(count_of(many, "\n") == 41);
  CHECK(many.ends_with("data: further lines that Python prints are not shown\n"));
}

int64_t open_files(pid_t pid) {
  const auto folder = std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid));
  return std::distance(std::filesystem::begin(folder), std::filesystem::end(folder));
}

constexpr const char* kMemory = R"(import os
import numpy

class Blocks:
    def __len__(self): return 100000
    def __getitem__(self, index):
        return {"x": numpy.full(index % 7 + 1, index), "pid": os.getpid()}
)";

TEST_CASE("thousands of batches of changing sizes open no further files") {
  const PythonFiles files(kMemory);
  const auto dataset = files.dataset("Blocks");
  const auto pid = static_cast<pid_t>(number(batch_of(*dataset, {0}), "pid"));
  std::vector<int64_t> here, there;
  for (int64_t i = 0; i < 3000; ++i) {
    const Batch batch = batch_of(*dataset, {i});
    REQUIRE(batch["x"].size(1) == i % 7 + 1);
    if (i == 100 || i == 2999) {
      here.push_back(open_files(::getpid()));
      there.push_back(open_files(pid));
    }
  }
  CHECK(here[0] == here[1]);
  CHECK(there[0] == there[1]);
}

TEST_CASE("batches that are kept keep their values and no open files") {
  const PythonFiles files(kMemory);
  const auto dataset = files.dataset("Blocks");
  std::vector<Batch> kept;
  for (int64_t i = 0; i < 1500; ++i) kept.push_back(batch_of(*dataset, {i}));
  const auto pid = static_cast<pid_t>(number(kept[0], "pid"));
  CHECK(open_files(pid) < 40);
  for (int64_t i = 0; i < 1500; ++i) REQUIRE(number(kept[size_t(i)], "pid") == pid);
  for (int64_t i = 0; i < 1500; ++i) REQUIRE(kept[size_t(i)]["x"][0][0].item<int64_t>() == i);
}

TEST_CASE("a batch outlives its dataset") {
  const PythonFiles files(kMemory);
  const Batch batch = batch_of(*files.dataset("Blocks"), {41, 48});
  CHECK(batch["x"][1][0].item<int64_t>() == 48);
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

TEST_CASE("threads that read at once have a worker each") {
  const PythonFiles files(kEnds);
  const auto dataset = files.dataset("Ends", "kwargs: {how: slow, at: 0}");
  std::vector<int64_t> pids(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int64_t k = 0; k < 2; ++k) pids[i] = number(batch_of(*dataset, {k, int64_t(i)}), "pid");
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(pids.begin(), pids.end());
  CHECK(std::unique(pids.begin(), pids.end()) == pids.end());
}

TEST_CASE("lambdas, neighbours, packages and files of the same name are found") {
  const PythonFiles files(R"(import numpy
import neighbour
make = lambda size=3: [{"x": (lambda: neighbour.VALUE)()}] * size
)");
  files.write("neighbour.py", "VALUE = 11\n");
  files.write("random.py", "raise ImportError('this is not the random of Python')\n");
  CHECK(number(batch_of(*files.dataset("make", "kwargs: {size: 5}"), {4}), "x") == 11);
  // A file of a package may import its neighbours by a dot.
  files.write("package/__init__.py", "");
  files.write("package/inner/__init__.py", "");
  files.write("package/inner/own.py", "from .. import values\nmake = lambda: [{'x': values.A}]\n");
  files.write("package/values.py", "A = 12\n");
  const auto at = [&](const std::string& object, const std::string& more = "") {
    return dataset_of(fmt::format("{{class: Python, python: {}, folder: {}, object: '{}'{}}}",
                                  kPython, files.path(), object, more));
  };
  CHECK(number(batch_of(*at(files / "package/inner/own.py:make"), {0}), "x") == 12);
  CHECK(number(batch_of(*at("package.inner.own:make"), {0}), "x") == 12);
  // Two files of one name.
  files.write("other/my_data.py", "make = lambda: [{'x': 13}]\n");
  const auto one = files.dataset("make");
  const auto other = at(files / "other/my_data.py:make");
  CHECK(number(batch_of(*other, {0}), "x") == 13);
  CHECK(number(batch_of(*one, {0}), "x") == 11);
  // A file is run once for the dataset and its collate_fn.
  files.write("both.py",
              "class Item(dict): pass\n"
              "make = lambda: [Item(x=1)]\n"
              "def collate(items): return {'x': [int(type(each) is Item) for each in items]}\n");
  CHECK(number(batch_of(*at(files / "both.py:make",
                            ", collate_fn: '" + files.path() + "/both.py:collate'"),
                        {0}),
               "x") == 1);
}

TEST_CASE("what a dataset prints cannot steer the terminal") {
  const PythonFiles files(R"(import sys
class Escapes:
    def __len__(self): return 4
    def __getitem__(self, index):
        print("\x1b]0;Title\x07\tnew \u202e")
        if index: sys.exit("\x1b[31mred")
        return {"x": index}
)");
  const std::string shown = "\\x1b]0;Title\\x07\tnew \\u202e";
  std::string message;
  const std::string printed = errors_of([&] {
    const auto dataset = files.dataset("Escapes");
    message = message_of([&] { batch_of(*dataset, {1}); });
  });
  CHECK(printed.starts_with("data: " + shown + "\n"));
  CHECK(printed.ends_with("\ndata: SystemExit: \\x1b[31mred\n"));
  CHECK(has(message, "ended with exit status 1\n" + shown + "\n"));
  CHECK_FALSE(has(printed + message, "\x1b"));
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

TEST_CASE("a dataset without examples has none") {
  const PythonFiles files("make = lambda: []\n");
  CHECK(files.dataset("make")->size() == 0);
}

}  // namespace python_worker_test
}  // namespace stepop
