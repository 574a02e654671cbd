#include "runtime/tools/tune/trainee.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/core/base/shell_text.h"
#include "runtime/core/config/references.h"
#include "runtime/core/programs/spawn.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/tune/measured_training.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookMilliseconds = 100;
constexpr size_t kLongestReason = 200;
constexpr std::chrono::seconds kEndsWithin{5};

/// Seconds: long enough for the clock and some turns of the scheduler, and short enough that other
/// programs disturb all candidates alike.
constexpr double kPortion = 0.12;
/// Steps before a portion are not measured: they use up prepared batches and fill caches.
constexpr int64_t kBeforeEach = 8;
constexpr int64_t kMostBefore = 32;

int64_t steps_for(double seconds, double step_seconds) {
  return std::max<int64_t>(1, std::llround(seconds / std::max(step_seconds, 1e-7)));
}

/// The last line that the program printed as an error, without `stepop: `, or its last line.
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

/// Why a process with this status ended; empty when nothing says it.
std::string reason_of(int status, const std::string& output) {
  if (!WIFSIGNALED(status)) return error_in(try_read_file(output).value_or(""));
  return WTERMSIG(status) == SIGKILL ? "it was killed (SIGKILL), as happens where memory runs out"
                                     : fmt::format("{} ended it", signal_name(WTERMSIG(status)));
}

}  // namespace

Trainee::Trainee(const TraineeOptions& options, const std::string& mode, Value config,
                 const OrderedMap<Value>& settings)
    : options_(options) {
  static int number = 0;
  const std::string folder = fmt::format("{}/{}", options.folder, ++number);
  std::filesystem::create_directory(folder);
  for (const auto& [key, value] : settings) config.as_map().set(key, value);
  const std::string file = folder + "/config.yaml";
  write_file_atomically(file, to_yaml(escape_references(config)));
  const Value* processes = config.find("processes");
  const int64_t count = processes != nullptr && processes->is_int() ? processes->as_int() : 1;
  const auto places = count > 1 ? options.places(static_cast<int>(count))
                                : std::vector<std::vector<std::string>>(1);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    std::vector<std::string> variables = places[rank];
    if (const Value* wait = config.find("thread_wait"); wait != nullptr && wait->is_text()) {
      for (const auto& [name, value] : variables_of_thread_wait(wait->as_text())) {
        variables.push_back(value ? fmt::format("{}={}", name, *value) : name);
      }
    }
    variables.push_back(fmt::format("{}={}", kTuneVariable, mode));
    start(file, std::move(variables), fmt::format("{}/output-{}", folder, rank));
  }
}

void Trainee::start(const std::string& config_file, std::vector<std::string> variables,
                    const std::string& output) {
  // This kind of socket hands over whole lines.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error("cannot make a socket");
  }
  OpenFile socket(ends[0]);
  const OpenFile other(ends[1]);
  const OpenFile out = open_file(output, O_WRONLY | O_CREAT | O_APPEND, "write " + output);
  std::vector<std::string> words = options_.words;
  words.insert(words.begin(), program_name());
  words.insert(words.end(), {"-b", config_file});
  // A stopped process gets no signal but SIGKILL.
  const Spawn program{.words = std::move(words),
                      .is_this_program = true,
                      .environment = std::move(variables),
                      .in = other.number(),
                      .out = out.number(),
                      .err = out.number(),
                      .signal_when_we_die = SIGKILL};
  pid_t child = 0;
  try {
    child = spawn(program);
  } catch (const Error& error) {
    throw CandidateFailed(error.what());
  }
  processes_.push_back({.child = std::make_unique<Child>(child, Child::Ends::kAtOnce),
                        .socket = std::move(socket),
                        .output = output});
}

Trainee::~Trainee() {
  for (const auto& process : processes_) {
    if (!process.child->has_ended()) ::kill(-process.child->pid(), SIGKILL);
  }
}

void Trainee::write(const std::string& line) {
  for (const auto& process : processes_) {
    size_t written = 0;
    if (write_all(process.socket, line + "\n", written) != 0) fail();
  }
}

std::vector<std::string> Trainee::read() {
  std::vector<std::string> lines;
  for (const auto& process : processes_) {
    auto line = read_line(process);
    if (!line) fail();
    lines.push_back(std::move(*line));
  }
  return lines;
}

std::optional<std::string> Trainee::read_first() {
  Process& first = processes_.front();
  auto line = read_line(first);
  if (line) return line;
  while (!first.child->has_ended()) ::poll(nullptr, 0, 1);
  if (first.child->status() != 0) fail();
  return std::nullopt;
}

std::optional<std::string> Trainee::read_line(const Process& process) {
  pollfd file{process.socket.number(), POLLIN, 0};
  do {
    if (options_.interrupt) options_.interrupt();
    if (Clock::now() > options_.deadline) throw TimeOver();
  } while (::poll(&file, 1, kLookMilliseconds) <= 0);
  std::array<char, 4096> line{};
  const ssize_t count = ::recv(process.socket.number(), line.data(), line.size(), 0);
  return count > 0 ? std::optional(std::string(line.data(), static_cast<size_t>(count)))
                   : std::nullopt;
}

/// When one process of several fails, the others fail too and say so: the first reason counts.
void Trainee::fail() {
  const auto until = Clock::now() + kEndsWithin;
  std::vector<bool> seen(processes_.size());
  while (std::ranges::count(seen, false) > 0 && Clock::now() < until) {
    for (size_t i = 0; i < processes_.size(); ++i) {
      Child& child = *processes_[i].child;
      if (seen[i] || !child.has_ended()) continue;
      seen[i] = true;
      const std::string reason = reason_of(child.status(), processes_[i].output);
      if (!reason.empty()) throw CandidateFailed(reason);
    }
    ::poll(nullptr, 0, 10);
  }
  throw CandidateFailed("it ended without a message");
}

void Trainee::send(int signal) {
  if (processes_.size() == 1) ::kill(-processes_.front().child->pid(), signal);
}

TrainingSubject::TrainingSubject(const TraineeOptions& options, const Value& config,
                                 const OrderedMap<Value>& settings)
    : trainee_(options, kMeasureSteps, config, settings) {
  read_report();
  // The first step makes kernels, memory and the optimizer's state.
  run(0, 1);
  for (int64_t steps = 1; static_cast<double>(steps) * run(0, steps) < kPortion / 2;) steps *= 2;
  steps_ = steps_for(kPortion, step_seconds_);
  trainee_.rest();
}

void TrainingSubject::read_report() {
  const Value report = parse_yaml(trainee_.read().front(), {"the measured training", 0});
  present_ = {.settings = report.find("settings")->as_map(),
              .precision = report.find("precision")->as_text(),
              .is_cpu = report.find("is_cpu")->as_bool(),
              .has_images = report.find("has_images")->as_bool(),
              .can_use_onednn = report.find("can_use_onednn")->as_bool(),
              .networks = report.find("networks")->as_map(),
              .cores = report.find("cores")->as_int()};
  device_ = report.find("device")->as_text();
  batch_size_ = report.find("batch_size")->as_int();
  examples_ = report.find("examples")->as_int();
}

/// The slowest process counts, and the memory of all.
double TrainingSubject::run(int64_t before, int64_t steps) {
  trainee_.write(fmt::format("run {} {}", before, steps));
  double memory = 0;
  step_seconds_ = 0;
  for (const auto& line : trainee_.read()) {
    char* rest = nullptr;
    step_seconds_ = std::max(step_seconds_, std::strtod(line.c_str(), &rest));
    memory += std::strtod(rest, nullptr);
  }
  memory_ = std::max(memory_, memory);
  return step_seconds_;
}

int64_t TrainingSubject::steps_before() const {
  return std::clamp<int64_t>(steps_ / kBeforeEach, 1, kMostBefore);
}

double TrainingSubject::portion_seconds() const {
  return static_cast<double>(steps_ + steps_before()) * step_seconds_;
}

double TrainingSubject::measure() {
  trainee_.resume();
  const double seconds = run(steps_before(), steps_);
  trainee_.rest();
  steps_ = steps_for(kPortion, seconds);
  return seconds;
}

}  // namespace stepop
