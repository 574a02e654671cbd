#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/places.h"

namespace stepop {

/// Runs a Python script with `arguments` in the tree's own virtual environment, which has numpy,
/// h5py and safetensors, and returns what it printed. Throws std::runtime_error, with the script's
/// output, when it fails or when there is no such Python: these checks are never skipped.
inline std::string run_python(const std::string& script,
                              const std::vector<std::string>& arguments = {}) {
  const std::string python = STEPOP_SOURCE_DIR "/.venv/bin/python3";
  if (!std::filesystem::exists(python)) {
    throw std::runtime_error(python + " is missing: run `make deps`");
  }
  std::vector<std::string> words{python, "-X", "pycache_prefix=" STEPOP_BINARY_DIR "/pycache", "-c",
                                 script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, python.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(pipe[0]);
  int status = 0;
  if (failed != 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error("Python failed:\n" + output);
  }
  return output;
}

}  // namespace stepop
