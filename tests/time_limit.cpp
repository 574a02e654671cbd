#include "tests/time_limit.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stepop {
namespace {

/// The test case that runs, in memory that the watcher shares.
struct Shared {
  char text[512];
};
Shared* shared = nullptr;

/// Writes the test case that begins.
struct NamesTestCase : doctest::IReporter {
  explicit NamesTestCase(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& test) override {
    if (shared == nullptr) return;
    std::snprintf(shared->text, sizeof(shared->text), "\"%s\", %s:%u", test.m_name,
                  test.m_file.c_str(), test.m_line);
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("names_test_case", 1, NamesTestCase);

/// Empty for a process that has ended, even between the opening and the reading of its file, where
/// an istreambuf_iterator would throw.
std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Process {
  pid_t parent = 0;
  char state = '?';
  std::string words;
};

std::map<pid_t, Process> all_processes() {
  std::map<pid_t, Process> found;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    const pid_t id = std::atoi(entry->d_name);
    if (id <= 0) continue;
    const std::string place = "/proc/" + std::to_string(id);
    const std::string stat = content(place + "/stat");
    const size_t name_end = stat.rfind(')');  // the name in brackets may hold anything
    if (name_end == std::string::npos) continue;
    Process process;
    std::sscanf(stat.c_str() + name_end + 1, " %c %d", &process.state, &process.parent);
    process.words = content(place + "/cmdline");
    for (char& letter : process.words) {
      if (letter == '\0') letter = ' ';
    }
    found[id] = std::move(process);
  }
  ::closedir(folder);
  return found;
}

/// Those that `root` started, directly or not, after itself.
std::vector<pid_t> family_of(pid_t root, const std::map<pid_t, Process>& all) {
  std::vector<pid_t> family = {root};
  for (size_t i = 0; i < family.size(); ++i) {
    for (const auto& [id, process] : all) {
      if (process.parent == family[i]) family.push_back(id);
    }
  }
  return family;
}

void end_tests(pid_t tests, int seconds) {
  const auto all = all_processes();
  std::fprintf(stderr, "\nstepop_tests: not done after %d seconds, in %s\n", seconds, shared->text);
  const std::vector<pid_t> family = family_of(tests, all);
  for (const pid_t id : family) {
    const auto found = all.find(id);
    if (found == all.end()) continue;
    const std::string where = content("/proc/" + std::to_string(id) + "/wchan");
    std::fprintf(stderr, "  %d, child of %d, state %c %s: %.300s\n", id, found->second.parent,
                 found->second.state, where.c_str(), found->second.words.c_str());
  }
  for (const pid_t id : family) ::kill(id, SIGKILL);
}

/// The seconds that the threads of processes had a processor, and that they wanted one and had
/// none.
struct Turns {
  double ran = 0;
  double waited = 0;
};

Turns turns_of(const std::string& thread) {
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  std::sscanf(content(thread + "/schedstat").c_str(), "%llu %llu", &ran, &waited);
  return {static_cast<double>(ran) / 1e9, static_cast<double>(waited) / 1e9};
}

/// What the tests got of the processors: on a crowded machine a test is slow without hanging.
class Share {
 public:
  explicit Share(pid_t tests) : tests_(tests) { next(); }

  /// The part of the last second that counts: what the threads of the tests ran and slept, without
  /// what they waited for a processor.
  double next() {
    std::map<pid_t, Turns> now;
    Turns sum;
    for (const pid_t process : family_of(tests_, all_processes())) {
      const std::string tasks = "/proc/" + std::to_string(process) + "/task";
      DIR* const folder = ::opendir(tasks.c_str());
      if (folder == nullptr) continue;
      while (const dirent* entry = ::readdir(folder)) {
        const pid_t thread = std::atoi(entry->d_name);
        if (thread <= 0) continue;
        const Turns turns = turns_of(tasks + "/" + entry->d_name);
        sum.ran += turns.ran - before_[thread].ran;
        sum.waited += turns.waited - before_[thread].waited;
        now[thread] = turns;
      }
      ::closedir(folder);
    }
    before_ = std::move(now);
    const double idle = std::max(0.0, 1 - sum.ran - sum.waited);
    const double part = (idle + sum.ran) / (idle + sum.ran + std::max(0.0, sum.waited));
    return std::clamp(part, 0.0, part_of_load());
  }

 private:
  /// Less than 1 while more threads want to run than two for each processor: programs that ended
  /// since the last call have left no times.
  static double part_of_load() {
    static const double most = 2.0 * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
    int running = 0;
    std::sscanf(content("/proc/loadavg").c_str(), "%*f %*f %*f %d/", &running);
    return running > most ? most / running : 1;
  }

  pid_t tests_;
  std::map<pid_t, Turns> before_;
};

/// Waits until `end` closes, or until the seconds that count are over: false.
bool ends_within(int end, pid_t tests, double seconds) {
  pollfd closed{end, POLLIN, 0};
  Share share(tests);
  for (double counted = 0; counted < seconds; counted += share.next()) {
    if (::poll(&closed, 1, 1000) != 0) return true;
  }
  return false;
}

}  // namespace

void limit_time() {
  const char* const given = std::getenv("STEPOP_TEST_SECONDS");
  const int seconds = given == nullptr ? 0 : std::atoi(given);
  if (seconds <= 0) return;
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int held[2];
  if (memory == MAP_FAILED || ::pipe2(held, O_CLOEXEC) != 0) return;
  shared = static_cast<Shared*>(memory);
  std::strcpy(shared->text, "no test case yet");
  const pid_t tests = ::getpid();
  const pid_t between = ::fork();
  if (between != 0) {
    ::close(held[0]);  // the other end closes when this process ends
    ::waitpid(between, nullptr, 0);
    return;
  }
  if (::fork() != 0) ::_exit(0);  // tests wait for all their children; the watcher is none
  ::close(held[1]);
  if (!ends_within(held[0], tests, seconds)) end_tests(tests, seconds);
  ::_exit(0);
}

}  // namespace stepop
