#include "runtime/core/programs/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr const char* kParent = "STEPOP_PARENT";

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  return pointers;
}

std::vector<std::string> changed_environment(std::vector<std::string> changes) {
  const auto is_changed = [&](std::string_view name) {
    return std::ranges::any_of(changes, [&](const std::string& change) {
      return std::string_view(change).substr(0, change.find('=')) == name;
    });
  };
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (!is_changed(entry.substr(0, entry.find('=')))) all.emplace_back(entry);
  }
  for (auto& change : changes) {
    if (change.find('=') != std::string::npos) all.push_back(std::move(change));
  }
  return all;
}

/// The open files of the program.
class FileActions {
 public:
  explicit FileActions(const Spawn& program) {
    posix_spawn_file_actions_init(&actions_);
    if (program.in == Spawn::kNothing) {
      posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions_, program.in, STDIN_FILENO);
    }
    posix_spawn_file_actions_adddup2(&actions_, program.out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, program.err, STDERR_FILENO);
    if (program.keeps_files) return;
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// The group and the signals of the program.
class Attributes {
 public:
  explicit Attributes(const Spawn& program) {
    posix_spawnattr_init(&attributes_);
    // Signals that this process ignores would stay ignored in the program.
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&signals, number);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    // Our threads block all signals; a program must receive the signal that ends it.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    const int group = program.has_own_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(
        &attributes_, static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// The file of this program, by its own name where nothing else lies there now: tools show the
/// name.
std::string own_file() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code failed;
  const std::filesystem::path named = std::filesystem::read_symlink(kSelf, failed);
  const bool is_same = !failed && std::filesystem::equivalent(named, kSelf, failed) && !failed;
  return is_same ? named.string() : kSelf;
}

}  // namespace

pid_t spawn(Spawn program) {
  std::vector<std::string> variables = std::move(program.environment);
  if (program.signal_when_we_die != 0) {
    variables.push_back(fmt::format("{}={} {}", kParent, ::getpid(), program.signal_when_we_die));
  }
  std::vector<std::string> all = changed_environment(std::move(variables));
  std::vector<char*> environment = pointers_to(all);
  environment.push_back(nullptr);
  std::vector<char*> words = pointers_to(program.words);
  words.push_back(nullptr);
  const std::string file = program.is_this_program ? own_file() : program.words[0];
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, file.c_str(), FileActions(program).get(),
                                    Attributes(program).get(), words.data(), environment.data());
  if (failed == 0) return child;
  throw Error(
      fmt::format("cannot run {}: {}", program.words[0], std::generic_category().message(failed)));
}

void follow_parent() {
  const char* const text = std::getenv(kParent);
  if (text == nullptr) return;
  int parent = 0;
  int signal = 0;
  const bool is_read = std::sscanf(text, "%d %d", &parent, &signal) == 2;
  ::unsetenv(kParent);
  if (!is_read) return;
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parent) ::_exit(128 + signal);
}

}  // namespace stepop
