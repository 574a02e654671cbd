#include "runtime/tools/tune/trainee.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "runtime/core/base/shell_text.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/yaml_writer.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/tune/tune_mode.h"
#include "runtime/train/run/signals.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookMilliseconds = 100;
/// Above all numbers that a child gives to its own files.
constexpr int kAboveStandard = 10;
constexpr size_t kLongestReason = 200;
constexpr std::chrono::seconds kEndsWithin{5};

struct Pipe {
  OpenFile read;
  OpenFile write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  const OpenFile read(ends[0]);
  const OpenFile write(ends[1]);
  return {OpenFile(::fcntl(read.number(), F_DUPFD_CLOEXEC, kAboveStandard)),
          OpenFile(::fcntl(write.number(), F_DUPFD_CLOEXEC, kAboveStandard))};
}

/// The first of a name counts; one without a value is left out.
std::vector<std::string> environment_with(const Variables& changes) {
  std::vector<std::string> all;
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  for (const auto& [name, value] : changes) {
    if (value) all.push_back(name + "=" + *value);
  }
  for (char** each = environ; *each != nullptr; ++each) {
    const bool is_changed = std::ranges::any_of(
        changes, [&](const auto& change) { return change.first == name_of(*each); });
    if (!is_changed) all.emplace_back(*each);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

const Value* find_setting(const Value& config, const OrderedMap<Value>& settings,
                          const std::string& key) {
  const Value* own = settings.find(key);
  const Value* found = own != nullptr ? own : config.find(key);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

/// What a process said last on its standard error: `stepop: configs/a.yaml:3: ...`.
std::string error_in(const std::string& output) {
  constexpr std::string_view kOurs = "stepop: ";
  std::string found;
  std::string last;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOurs)) found = line.substr(kOurs.size());
    if (!line.empty()) last = line;
  }
  std::string text = found.empty() ? last : found;
  if (text.size() > kLongestReason) text = text.substr(0, kLongestReason) + " ...";
  return text;
}

}  // namespace

Trainee::Trainee(const TraineeOptions& options, const std::string& mode, const Value& config,
                 const OrderedMap<Value>& settings)
    : options_(options) {
  static int number = 0;
  const std::string folder = fmt::format("{}/{}", options.folder, ++number);
  std::filesystem::create_directory(folder);
  Value whole = config;
  for (const auto& [key, value] : settings) whole.as_map().set(key, value);
  const std::string file = folder + "/config.yaml";
  write_file_atomically(file, to_yaml(escape_references(whole)));
  const Value* processes = find_setting(config, settings, "processes");
  const int count = processes != nullptr && processes->is_int()
                        ? static_cast<int>(std::max<int64_t>(1, processes->as_int()))
                        : 1;
  const auto places = count > 1 ? options.places(count) : std::vector<std::vector<std::string>>(1);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    Variables variables{{kTuneVariable, mode}};
    for (const auto& place : places[rank]) {
      const size_t equals = place.find('=');
      variables.emplace_back(place.substr(0, equals), place.substr(equals + 1));
    }
    const Value* wait = find_setting(config, settings, "thread_wait");
    if (wait != nullptr && wait->is_text()) {
      for (auto& variable : variables_of_thread_wait(wait->as_text())) {
        variables.push_back(std::move(variable));
      }
    }
    start(file, variables, fmt::format("{}/output-{}", folder, rank));
  }
}

void Trainee::start(const std::string& config_file, const Variables& variables,
                    const std::string& output) {
  Pipe input = make_pipe();
  Pipe answers = make_pipe();
  const OpenFile out = open_file(output, O_WRONLY | O_CREAT | O_APPEND, "write " + output);
  std::vector<std::string> words = options_.words;
  words.insert(words.begin(), program_name());
  words.insert(words.end(), {"-b", config_file});
  std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> argv = pointers_to(words);
  const std::vector<char*> names = pointers_to(environment);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw CandidateFailed("no further process can be started");
  if (child == 0) {
    // From here on only what may be called while other threads hold locks. A process that is
    // stopped hears no other signal than this one.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(128 + SIGKILL);
    for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
    ::dup2(out.number(), STDOUT_FILENO);
    ::dup2(out.number(), STDERR_FILENO);
    ::dup2(input.read.number(), STDIN_FILENO);
    ::dup2(answers.write.number(), kTuneAnswers);
    ::execve("/proc/self/exe", argv.data(), names.data());
    ::_exit(127);
  }
  ::setpgid(child, child);
  processes_.push_back(std::make_unique<Process>());
  Process& process = *processes_.back();
  process.id = child;
  process.input = std::move(input.write);
  process.answers = std::move(answers.read);
  process.output = output;
}

Trainee::~Trainee() {
  for (const auto& process : processes_) {
    if (!process->has_ended) ::kill(-process->id, SIGKILL);
  }
  for (const auto& process : processes_) {
    while (!process->has_ended && ::waitpid(process->id, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Trainee::write(const std::string& line) {
  for (const auto& process : processes_) {
    size_t written = 0;
    if (write_all(process->input, line + "\n", written) != 0) fail();
  }
}

std::vector<std::string> Trainee::read() {
  std::vector<std::string> lines;
  for (const auto& process : processes_) {
    auto line = read_line(*process);
    if (!line) fail();
    lines.push_back(std::move(*line));
  }
  return lines;
}

std::optional<std::string> Trainee::read_first() {
  Process& first = *processes_.front();
  auto line = read_line(first);
  if (line) return line;
  while (::waitpid(first.id, &first.status, 0) < 0 && errno == EINTR) {
  }
  first.has_ended = true;
  if (!WIFEXITED(first.status) || WEXITSTATUS(first.status) != 0) fail();
  return std::nullopt;
}

std::optional<std::string> Trainee::read_line(Process& process) {
  const auto begin = Clock::now();
  for (;;) {
    if (const size_t end = process.read.find('\n'); end != std::string::npos) {
      std::string line = process.read.substr(0, end);
      process.read.erase(0, end + 1);
      return line;
    }
    if (options_.interrupt) options_.interrupt();
    pollfd file{process.answers.number(), POLLIN, 0};
    if (::poll(&file, 1, kLookMilliseconds) <= 0) {
      const std::chrono::duration<double> passed = Clock::now() - begin;
      if (passed.count() < options_.patience) continue;
      throw CandidateFailed(fmt::format("no answer within {:.0f} seconds", options_.patience));
    }
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(process.answers.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    process.read.append(buffer.data(), static_cast<size_t>(count));
  }
}

/// Of several the others fail because one did, and say so.
void Trainee::fail() {
  const auto until = Clock::now() + kEndsWithin;
  const auto is_over = [](const auto& process) { return process->has_ended; };
  while (!std::ranges::all_of(processes_, is_over) && Clock::now() < until) {
    for (const auto& process : processes_) {
      if (process->has_ended) continue;
      process->has_ended = ::waitpid(process->id, &process->status, WNOHANG) == process->id;
      if (!process->has_ended) continue;
      if (std::string reason = reason_of(*process); !reason.empty()) throw CandidateFailed(reason);
    }
    ::poll(nullptr, 0, 10);
  }
  throw CandidateFailed("it ended without a word");
}

std::string Trainee::reason_of(const Process& process) {
  if (WIFSIGNALED(process.status)) {
    const int number = WTERMSIG(process.status);
    return number == SIGKILL ? "it was killed (SIGKILL), as happens where memory runs out"
                             : fmt::format("{} ended it", signal_name(number));
  }
  return error_in(try_read_file(process.output).value_or(""));
}

void Trainee::rest() {
  if (processes_.size() != 1 || rests_) return;
  ::kill(-processes_.front()->id, SIGSTOP);
  rests_ = true;
}

void Trainee::go_on() {
  if (!rests_) return;
  ::kill(-processes_.front()->id, SIGCONT);
  rests_ = false;
}

}  // namespace stepop
