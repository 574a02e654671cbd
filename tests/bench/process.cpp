#include "tests/bench/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tests/bench/measure.h"
#include "tests/places.h"

namespace stepop::bench {

Process::Process(std::vector<std::string> words, const std::string& folder) : name_(words.at(0)) {
  std::array<int, 2> to_child{};
  std::array<int, 2> from_child{};
  if (::pipe2(to_child.data(), O_CLOEXEC) != 0 || ::pipe2(from_child.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe failed");
  }
  std::signal(SIGPIPE, SIG_IGN);  // a program that ended is told by read_line
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  const int failed =
      ::posix_spawnp(&child_, name_.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = ::fdopen(to_child[1], "w");
  output_ = ::fdopen(from_child[0], "r");
  if (failed != 0) {
    child_ = 0;
    throw std::runtime_error("cannot start " + name_);
  }
}

Process::~Process() {
  if (child_ != 0) wait();
}

void Process::write_line(const std::string& line) {
  std::fprintf(input_, "%s\n", line.c_str());
  std::fflush(input_);
}

std::string Process::read_line() {
  std::string line;
  for (int c = 0; (c = std::fgetc(output_)) != EOF;) {
    if (c == '\n') return line;
    line += static_cast<char>(c);
  }
  throw std::runtime_error(name_ + " ended too early");
}

double Process::ask_seconds(const std::string& line) {
  constexpr std::chrono::milliseconds kRest{30};
  std::this_thread::sleep_for(kRest);
  write_line(line);
  const double seconds = std::stod(read_line());
  std::this_thread::sleep_for(kRest);
  return seconds;
}

int Process::wait() {
  std::fclose(input_);
  while (std::fgetc(output_) != EOF) {
  }
  std::fclose(output_);
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = 0;
  return status;
}

double time_program(const std::vector<std::string>& words, const std::string& folder) {
  const Stopwatch watch;
  Process process(words, folder);
  if (process.wait() != 0) throw std::runtime_error(words.at(0) + " failed");
  return watch.seconds();
}

std::string python() {
  const std::string own = STEPOP_SOURCE_DIR "/.venv/bin/python3";
  return std::filesystem::exists(own) ? own : "python3";
}

}  // namespace stepop::bench
