#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace stepop::bench {

/// A program that runs beside the benchmark, spoken to line by line through its standard input and
/// output. Ends with its input when this is destroyed.
class Process {
 public:
  /// `words`: the program's path and its arguments. `folder`: where it runs. Throws
  /// std::runtime_error when it cannot be started.
  Process(std::vector<std::string> words, const std::string& folder);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void write_line(const std::string& line);
  /// The next line without its end. Throws std::runtime_error when the program has ended.
  std::string read_line();

  /// Sends a line and returns the seconds that the program answers. Waits a little before and
  /// after: LibTorch's threads spin for a while after their last work, on the cores of whoever is
  /// measured next.
  double ask_seconds(const std::string& line);

  /// Closes its input, reads the rest of its output, waits for its end; returns its exit status.
  int wait();

 private:
  std::string name_;
  pid_t child_ = 0;
  std::FILE* input_ = nullptr;
  std::FILE* output_ = nullptr;
};

/// The seconds from start to end of a program that must succeed.
double time_program(const std::vector<std::string>& words, const std::string& folder);

/// The tree's own Python with torch, from `make deps`; else the python3 on the path.
std::string python();

}  // namespace stepop::bench
