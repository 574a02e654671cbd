#include "tests/cli/torture.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/same_state.h"
#include "tests/without_clock.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;  // its own library has to come first
#else
constexpr bool kIsSanitized = false;
#endif

bool has_file(const fs::path& folder, std::string_view ending) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().filename().string().ends_with(ending)) return true;
  }
  return false;
}

std::vector<fs::path> evaluations(const std::string& root) {
  std::vector<fs::path> folders;
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(root + "/eval", failed)) {
    for (const auto& step : fs::directory_iterator(start.path(), failed)) {
      folders.push_back(step.path());
    }
  }
  return folders;
}

int64_t size_of(const std::string& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  return failed ? 0 : static_cast<int64_t>(size);
}

/// A file of /proc; empty if its process ended, be it between the opening and the reading.
std::string read_proc(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (ssize_t n; (n = read(file, part, sizeof(part))) > 0;)
    text.append(part, static_cast<size_t>(n));
  close(file);
  return text;
}

/// The loader threads of a process; those found so far, if it ends meanwhile.
int loader_threads(int pid) {
  int count = 0;
  std::error_code failed;
  fs::directory_iterator task(fmt::format("/proc/{}/task", pid), failed);
  for (; !failed && task != fs::directory_iterator(); task.increment(failed)) {
    count += read_proc(task->path().string() + "/comm") == "loader\n" ? 1 : 0;
  }
  return count;
}

/// libfaketime, in Debian's folder of this machine; empty if it is not there.
std::string faketime() {
  std::error_code failed;
  for (const auto& folder : fs::directory_iterator("/usr/lib", failed)) {
    fs::path library = folder.path() / "faketime/libfaketimeMT.so.1";
    if (access(library.c_str(), R_OK) == 0) return library;
  }
  return {};
}

/// Sets the time zone of a start, and where the library is there its clock: by years, to both
/// sides.
void set_clock(int start) {
  constexpr std::array kZones = {"UTC0", "LINT-14", "PST8PDT", "JST-9"};
  constexpr std::array kShifts = {"+0", "-3650d", "+3650d", "-2h", "+90d"};
  static const std::string library = faketime();
  const auto number = static_cast<size_t>(start);
  setenv("TZ", kZones[number % kZones.size()], 1);
  if (kIsSanitized || library.empty()) return;
  setenv("LD_PRELOAD", library.c_str(), 1);
  setenv("FAKETIME", kShifts[number % kShifts.size()], 1);
  setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
  setenv("NO_FAKE_STAT", "1", 1);
}

void reset_clock() {
  for (const char* name : {"TZ", "LD_PRELOAD", "FAKETIME"}) unsetenv(name);
}

/// In the child: nothing but system calls until exec.
[[noreturn]] void run_child(const std::string& folder, char* const* words, int64_t file_limit) {
  if (chdir(folder.c_str()) != 0) _exit(120);
  if (file_limit > 0) {
    const rlimit limit{static_cast<rlim_t>(file_limit), static_cast<rlim_t>(file_limit)};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(121);
  }
  execv(words[0], words);
  _exit(122);
}

/// The run that nobody disturbed, made once.
const TortureRun& undisturbed(const Torture& torture) {
  static std::map<std::string, std::unique_ptr<TortureRun>> runs;  // by their configs
  auto& run = runs[torture.yaml];
  if (run) return *run;
  auto whole = std::make_unique<TortureRun>(torture);
  const ProcessEnd end = whole->start();
  if (end.exit_code != 0 || end.signal != 0) throw std::runtime_error(end.err);
  if (whole->workers() < torture.workers) throw std::runtime_error("its loader has few workers");
  run = std::move(whole);
  return *run;
}

}  // namespace

std::vector<int> children_of(int pid) {
  std::istringstream numbers(read_proc(fmt::format("/proc/{0}/task/{0}/children", pid)));
  std::vector<int> children;
  for (int child; numbers >> child;) children.push_back(child);
  return children;
}

const char* phase_name(Phase phase) {
  constexpr const char* kNames[] = {"loading", "a step", "a checkpoint", "an evaluation",
                                    "a callback"};
  return kNames[static_cast<int>(phase)];
}

TortureRun::TortureRun(Torture torture) : torture_(std::move(torture)) {
  folder_.write("torture.yaml", torture_.yaml);
}

ProcessEnd TortureRun::start(const std::function<void(int pid)>& disturb, int64_t file_limit) {
  const std::string run = root();
  log_size_ = run.empty() ? 0 : size_of(run + "/train/log.txt");
  std::vector<std::string> words = {STEPOP_BINARY_DIR "/stepop"};
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (run.empty()) {
    add({"-n", "t", "-b"});
    for (const auto& config : torture_.configs) add({STEPOP_SOURCE_DIR "/configs/" + config});
    add({"torture.yaml", "-t"});
  } else {
    add({"-p", run, "-t"});
  }
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // Pipes would fill up; files in the folder would meet the limit on files' sizes.
  std::FILE* out = std::tmpfile();
  std::FILE* err = std::tmpfile();
  if (out == nullptr || err == nullptr) throw std::runtime_error("no temporary files");
  setenv("OMP_NUM_THREADS", "1", 1);
  set_clock(starts_++);
  const pid_t pid = fork();
  if (pid != 0) reset_clock();
  if (pid < 0) throw std::runtime_error("cannot start another process");
  if (pid == 0) {
    int ends[2];
    if (file_limit > 0 && pipe(ends) == 0) {
      dup2(ends[1], 1);  // nobody reads it, which no run should mind; it is short
    } else {
      dup2(fileno(out), 1);
    }
    dup2(fileno(err), 2);
    run_child(folder_.path(), pointers.data(), file_limit);
  }
  int status = 0;
  workers_ = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (disturb) disturb(pid);
    if (!disturb && workers_ < torture_.workers) {
      int workers = loader_threads(pid);
      for (const int child : children_of(pid)) workers += loader_threads(child);
      workers_ = std::max(workers_, workers);
    }
    usleep(disturb ? 20 : 1000);
  }
  const auto text_of = [](std::FILE* file) {
    std::string text(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
    if (pread(fileno(file), text.data(), text.size(), 0) < 0) text.clear();
    std::fclose(file);
    return text;
  };
  ProcessEnd end;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  end.out = text_of(out);
  end.err = text_of(err);
  return end;
}

Phase TortureRun::phase() const {
  const std::string run = root();
  if (run.empty() || size_of(run + "/train/log.txt") <= log_size_) return Phase::kLoading;
  if (has_file(run + "/train/checkpoints", ".safetensors.tmp")) return Phase::kCheckpoint;
  for (const auto& folder : evaluations(run)) {
    if (fs::exists(folder / "outputs.h5.part")) return Phase::kEvaluation;
    if (fs::exists(folder / "outputs.h5") && !fs::exists(folder / "scalars.json")) {
      return Phase::kCallback;
    }
  }
  return Phase::kStep;
}

std::string TortureRun::root() const {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_.path("logs"), failed)) {
    if (!entry.path().filename().string().starts_with(".")) return entry.path().string();
  }
  return "";
}

State TortureRun::state() const {
  State state =
      load_checkpoint(root() + "/train/checkpoints/" + checkpoint_name(torture_.steps)).tensors;
  for (const char* time : {"stop_when.minutes", "stop_when.last_minutes"}) state.erase(time);
  return state;
}

std::vector<std::string> TortureRun::metrics() const {
  std::istringstream text(read_bytes(root() + "/train/metrics.jsonl"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(without_clock(nlohmann::ordered_json::parse(line)).dump());
  }
  return lines;
}

State TortureRun::outputs() const {
  State state;
  const auto add = [&](const std::string& name, const at::Tensor& values) {
    const auto [place, is_new] = state.emplace(name, values);
    if (!is_new && !place->second.equal(values)) state.emplace(name + ", otherwise", values);
  };
  for (const auto& folder : evaluations(root())) {
    const std::string step = folder.filename().string();
    if (!fs::exists(folder / "scalars.json")) continue;
    for (const auto& [name, value] : read_scalars_file((folder / "scalars.json").string())) {
      add(step + "/" + name, at::tensor(value, at::kDouble));
    }
    const EvalFile file((folder / "outputs.h5").string());
    if (!file.complete()) throw std::runtime_error(file.path() + ": not complete");
    for (const auto& key : file.keys()) add(step + "/" + key, file.read(key));
  }
  return state;
}

std::map<std::string, std::string> TortureRun::links_and_pictures() const {
  std::map<std::string, std::string> found;
  const fs::path train = root() + "/train";
  for (const char* link : {"latest.safetensors", "best.safetensors"}) {
    found[link] = fs::read_symlink(train / "checkpoints" / link).string();
  }
  for (const char* split : {"train", "validation"}) {
    if (!fs::exists(train / split)) continue;  // nothing of it was shown
    for (const auto& name : files_below((train / split).string())) {
      found[std::string(split) + "/" + name] = read_bytes((train / split / name).string());
    }
  }
  return found;
}

void check_same(const TortureRun& run, bool was_asked_to_stop) {
  const TortureRun& whole = undisturbed(run.torture());
  CHECK(differences(run.state(), whole.state()) == "");
  CHECK(differences(run.outputs(), whole.outputs()) == "");
  const auto lines = run.metrics();
  const auto expected = whole.metrics();
  CHECK(lines.size() == expected.size());
  for (size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
    CHECK(lines[i] == expected[i]);
  }
  const auto kept = files_below(run.root() + "/train/checkpoints");
  const auto kept_by_whole = files_below(whole.root() + "/train/checkpoints");
  // Who is asked to stop saves where it is: near the end that checkpoint is one of the newest.
  CHECK(kept.size() == kept_by_whole.size());
  if (!was_asked_to_stop) CHECK(kept == kept_by_whole);
  const auto found = run.links_and_pictures();
  const auto wanted = whole.links_and_pictures();
  CHECK(found.size() == wanted.size());
  for (const auto& [name, bytes] : wanted) {
    CAPTURE(name);
    CHECK(found.contains(name));
    CHECK((found.contains(name) && found.at(name) == bytes));
  }
}

int torture_count(int fallback) {
  const char* text = std::getenv("STEPOP_TORTURE");
  return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : fallback;
}

uint64_t torture_seed() {
  if (const char* text = std::getenv("STEPOP_TORTURE_SEED"))
    return std::strtoull(text, nullptr, 10);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return mix_seed({static_cast<uint64_t>(now.count()), static_cast<uint64_t>(getpid())}) % 1000000;
}

}  // namespace stepop
