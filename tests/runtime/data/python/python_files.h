#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/dataset_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {

/// The tree's own Python, which has NumPy, PyTorch and Pillow.
inline constexpr const char* kPython = STEPOP_SOURCE_DIR "/.venv/bin/python3";

/// A folder with the user's file `my_data.py`.
struct PythonFiles : ScratchFolder {
  explicit PythonFiles(const std::string& code) { write("my_data.py", code); }

  /// The config of a dataset of the class or function `name`; `more` are further keys.
  std::string config(const std::string& name, const std::string& more = "") const {
    return fmt::format("{{class: Python, python: {}, folder: {}, object: '{}/my_data.py:{}'{}{}}}",
                       kPython, path(), path(), name, more.empty() ? "" : ", ", more);
  }

  std::unique_ptr<Dataset> dataset(const std::string& name, const std::string& more = "") const {
    return dataset_of(config(name, more));
  }
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What this process and its children write to standard error during `call`.
inline std::string errors_of(const std::function<void()>& call) {
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

/// The number under `key` of the first example.
inline int64_t number(const Batch& batch, const std::string& key) {
  return batch[key][0].item<int64_t>();
}

/// A dataset whose workers end in the way `how` at the example `at`.
inline constexpr const char* kEnds = R"(import ctypes, os, signal, subprocess, sys, time
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

}  // namespace stepop
