// Examples from worker processes: random numbers, what workers print, and what they keep.

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"

namespace stepop {
namespace python_worker_test {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

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

TEST_CASE("a dataset without examples has none") {
  const PythonFiles files("make = lambda: []\n");
  CHECK(files.dataset("make")->size() == 0);
}

}  // namespace python_worker_test
}  // namespace stepop
