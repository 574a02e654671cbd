#include "runtime/data/python/python_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/core/programs/spawn.h"
#include "runtime/core/system/start_thread.h"
#include "runtime/data/python/python_socket.h"

namespace stepop {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWaitForLines = 50;
/// How many lines of a dataset reach standard error; a print for each example would hide all else.
constexpr int64_t kMostShown = 40;
constexpr size_t kMostKept = 30;
constexpr size_t kMostLine = 2000;
constexpr std::chrono::milliseconds kLinesUnderWay{150};
constexpr std::chrono::milliseconds kPoll{50};
/// How long an answer about a dead worker is waited for.
constexpr std::chrono::seconds kMostWait{3};
/// How long the processes have to end by themselves, which is a little longer than the server gives
/// its workers.
constexpr std::chrono::seconds kEndOfAll{2};

void write_error_line(const std::string& line) {
  // One call, so that lines of several threads do not mix.
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

struct PrintedLines::State {
  std::string place;
  OpenFile read_end;
  OpenFile write_end;
  std::atomic<bool> is_ending = false;
  mutable std::mutex mutex;  ///< Guards the members below.
  std::deque<std::string> lines;
  int64_t count = 0;
  std::string open_line;
  std::thread thread;

  void add(std::string line) {
    // A progress bar draws over itself: its last state is shown.
    while (line.ends_with('\r')) line.pop_back();
    line.erase(0, line.rfind('\r') + 1);
    if (line.starts_with("  File \"<string>\", line ")) return;  // of the script, not of the user
    if (line.size() > kMostLine) line = shortened(line, kMostLine);
    line = shown_text(line);
    {
      const std::lock_guard lock(mutex);
      ++count;
      lines.push_back(line);
      if (lines.size() > kMostKept) lines.pop_front();
    }
    if (count <= kMostShown) write_error_line(fmt::format("{}: {}", place, line));
    if (count == kMostShown) {
      write_error_line(fmt::format("{}: further lines that Python prints are not shown", place));
    }
  }

  void take(std::string_view text) {
    open_line += text;
    for (size_t end = 0; (end = open_line.find('\n')) != std::string::npos;) {
      add(open_line.substr(0, end));
      open_line.erase(0, end + 1);
    }
    if (open_line.size() > 2 * kMostLine) add(std::exchange(open_line, ""));
  }

  void run() {
    std::array<char, 16384> buffer{};
    while (true) {
      pollfd ready{read_end.number(), POLLIN, 0};
      if (::poll(&ready, 1, kWaitForLines) <= 0) {
        if (is_ending) break;
        continue;
      }
      const ssize_t count_read = ::read(read_end.number(), buffer.data(), buffer.size());
      if (count_read < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count_read <= 0) break;
      take({buffer.data(), static_cast<size_t>(count_read)});
    }
    if (!open_line.empty()) add(std::exchange(open_line, ""));
  }
};

PrintedLines::PrintedLines(std::string place) : state_(std::make_unique<State>()) {
  state_->place = std::move(place);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_file("make a pipe", errno);
  state_->read_end = OpenFile(ends[0]);
  state_->write_end = OpenFile(ends[1]);
  state_->thread =
      start_thread("reads what Python prints", [state = state_.get()] { state->run(); });
}

PrintedLines::~PrintedLines() {
  state_->is_ending = true;
  state_->thread.join();
}

int PrintedLines::write_end() const { return state_->write_end.number(); }

void PrintedLines::close_write_end() { state_->write_end.close(); }

int64_t PrintedLines::count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->count;
}

std::string PrintedLines::last(int64_t first) const {
  std::this_thread::sleep_for(kLinesUnderWay);
  const std::lock_guard lock(state_->mutex);
  std::string text;
  int64_t number = state_->count - static_cast<int64_t>(state_->lines.size());
  for (const auto& line : state_->lines) {
    if (number++ >= first) text += "\n" + line;
  }
  return text;
}

namespace {

std::string text_of_status(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format(
        "was ended by signal {} ({}){}", signal, ::strsignal(signal),
        signal == SIGKILL ? "; the system kills a process that takes too much memory" : "");
  }
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

}  // namespace

PythonServer::PythonServer(const PythonSetup& setup, const InterruptCheck& interrupt)
    : place_(setup.place), printed_(std::make_unique<PrintedLines>(setup.place)) {
  if (find_program(setup.python).empty()) {
    throw Error(fmt::format(
        "{}: no Python to read it with: {}: not found; give one by \"python\" or by the "
        "environment's STEPOP_PYTHON",
        place_, setup.python));
  }
  auto [ours, theirs] = make_sockets();
  control_ = std::move(ours);
  child_ = std::make_unique<Child>(spawn({.words = {setup.python, "-c", python_worker_script()},
                                          .in = theirs.number(),
                                          .out = printed_->write_end(),
                                          .err = printed_->write_end()}),
                                   Child::Ends::kGroupPolitely);
  theirs.close();
  printed_->close_write_end();
  Json answer;
  try {
    send_message(control_,
                 fmt::format(R"({{"folder":{},"object":{},"kwargs":{},"keys":{},"collate_fn":{},)"
                             R"("resume":{}}})",
                             json_text(setup.folder), json_text(setup.object), setup.kwargs,
                             setup.keys, json_text(setup.collate_fn), json_text(setup.resume)),
                 interrupt);
    answer = try_read_ordered_json(receive_message(control_, interrupt));
  } catch (const SocketClosed&) {
    throw Error(fmt::format("{}: {} {}", place_, setup.python, end_of_server()));
  }
  std::string error;
  try {
    error = answer.value("error", "");
    facts_ = {.kind = answer.value("kind", ""),
              .versions = answer.value("versions", ""),
              .is_iterable = answer.value("iterable", false),
              .size = answer.value("size", int64_t{0})};
    const Json classes = answer.value("classes", Json::object());
    for (const auto& [key, names] : classes.items()) {
      facts_.classes.set(key, names.get<std::vector<std::string>>());
    }
  } catch (const Json::exception&) {
    throw Error(
        fmt::format("{}: {} sent no readable answer{}", place_, setup.python, printed_->last()));
  }
  if (!error.empty()) throw Error(fmt::format("{}: {}", place_, error));
}

PythonServer::~PythonServer() {
  control_.close();  // the server ends, and its workers with it
  child_->wait(kEndOfAll);
  child_.reset();
}

std::string PythonServer::end_of_server() {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  while (!child_->has_ended() && Clock::now() < deadline) ::poll(nullptr, 0, 5);
  const std::string how =
      child_->has_ended() ? text_of_status(child_->status()) : "closed its connection";
  return how + printed_->last();
}

/// Asks the server, whose answer is a number. When `waiting` throws, the answer is still to come.
int32_t PythonServer::ask(std::string_view question, std::initializer_list<int> files,
                          const std::function<void()>& waiting) {
  std::unique_lock lock(mutex_, std::defer_lock);
  while (!lock.try_lock_for(kPoll)) waiting();
  send_bytes(control_, question.data(), question.size(), waiting, files);
  ++open_questions_;
  int32_t answer = 0;
  for (; open_questions_ > 0; --open_questions_) {
    receive_bytes(control_, &answer, sizeof(answer), waiting);
  }
  return answer;
}

pid_t PythonServer::start_worker(int socket, int status, const std::function<void()>& waiting) {
  try {
    const int32_t pid = ask("W", {socket, status}, waiting);
    if (pid <= 1) throw Error(fmt::format("Python sent {} as the number of a process", pid));
    return pid;
  } catch (const SocketClosed&) {
    throw Error("the Python process of the dataset " + end_of_server());
  }
}

std::string PythonServer::end_of_worker(pid_t pid, const InterruptCheck& interrupt) {
  using Clock = std::chrono::steady_clock;
  struct NoAnswer {};
  const auto deadline = Clock::now() + kMostWait;
  const auto number = static_cast<int32_t>(pid);
  std::string question(1 + sizeof(number), 'E');
  std::memcpy(question.data() + 1, &number, sizeof(number));
  try {
    const int32_t status = ask(question, {}, [&] {
      if (interrupt) interrupt();
      if (Clock::now() > deadline) throw NoAnswer();
    });
    return (status == -1 ? "closed its connection" : text_of_status(status)) + printed_->last();
  } catch (const NoAnswer&) {
    return fmt::format(
        "has ended; how is not known, as the process {} that forked it does not answer: it is "
        "stopped, or busy{}",
        this->pid(), printed_->last());
  } catch (const SocketClosed&) {
    return "ended with the process that built the dataset, which " + end_of_server();
  }
}

}  // namespace stepop
