#include "runtime/train/run/run_directory.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/owner.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kTimeLength = 19;  // 2026-11-21T10-00-00

/// The end of a run folder's name while it is being made: `.<time>_<name>.<host>.<pid>.tmp`.
std::string making_end(int pid) { return fmt::format(".{}.{}.tmp", host_name(), pid); }

/// Removes unfinished folders of processes of this host that were killed.
void sweep_half_made(const std::string& parent) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(parent, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') || !name.ends_with(".tmp")) continue;
    const size_t dot = name.rfind('.', name.size() - 5);
    const int pid = std::atoi(name.c_str() + dot + 1);
    if (pid <= 0 || !name.ends_with(making_end(pid))) continue;
    const bool is_gone = ::kill(pid, 0) != 0 && errno == ESRCH;
    std::error_code ignored;
    if (is_gone) fs::remove_all(entry.path(), ignored);
  }
}

/// Whether a text is a time in the format of names, `2026-11-21T10-00-00`.
bool is_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00-00-00";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
    return form == '0' ? c >= '0' && c <= '9' : c == form;
  });
}

/// The time in the name of a config, of an evaluation, or of superseded files.
std::string_view time_in_name(std::string_view name) {
  for (const std::string_view mode : {"train_", "eval_"}) {
    if (name.starts_with(mode)) name.remove_prefix(mode.size());
  }
  name = name.substr(0, kTimeLength);
  return is_time(name) ? name : std::string_view();
}

/// The latest time in a name within the run; empty without one.
std::string last_time(const RunDirectory& directory) {
  std::string last;
  for (const char* folder : {"/configs", "/eval", "/train/superseded"}) {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory.root() + folder, failed)) {
      const std::string name = entry.path().filename().string();
      last = std::max(last, std::string(time_in_name(name)));
    }
  }
  return last;
}

/// The next second. Times in names are local, and are counted as if days had no gaps.
std::string second_after(const std::string& time) {
  constexpr const char* kForm = "%Y-%m-%dT%H-%M-%S";
  std::tm parts{};
  ::strptime(time.c_str(), kForm, &parts);
  const std::time_t next = ::timegm(&parts) + 1;
  ::gmtime_r(&next, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), kForm, &parts)};
}

/// Only one process can succeed in making a folder.
bool takes_folder(const std::string& path) {
  make_folders(fs::path(path).parent_path().string());
  if (file_calls().mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail_file("make the folder " + path, errno);
  return false;
}

}  // namespace

std::string time_name(int64_t seconds_later) {
  return local_time("%Y-%m-%dT%H-%M-%S", seconds_later);
}

std::string time_in(const std::string& folder_name) {
  const bool has_time = folder_name.size() > kTimeLength + 1 && folder_name[4] == '-' &&
                        folder_name[10] == 'T' && folder_name[kTimeLength] == '_';
  return has_time ? folder_name.substr(0, kTimeLength) : "";
}

RunDirectory RunDirectory::create(const std::string& parent, const std::string& time,
                                  const std::string& name, const std::string& config_name,
                                  const std::string& config,
                                  const std::function<void(const RunDirectory&)>& fill) {
  // Made under another name, so that an existing run always has its config.
  make_folders(parent);
  sweep_half_made(parent);
  RunDirectory directory(fmt::format("{}/.{}_{}{}", parent, time, name, making_end(getpid())));
  const std::string temporary = directory.root_;
  try {
    make_folders(directory.configs());
    make_folders(directory.checkpoints());
    if (!config_name.empty()) {
      write_file_atomically(directory.configs() + "/" + config_name, config);
    }
    if (fill) fill(directory);
    directory.root_ = fmt::format("{}/{}_{}", parent, time, name);
    for (int count = 2; file_calls().rename(temporary.c_str(), directory.root_.c_str()) != 0;
         ++count) {
      if (errno != ENOTEMPTY && errno != EEXIST) fail_file("make " + directory.root_, errno);
      directory.root_ = fmt::format("{}/{}_{}-{}", parent, time, name, count);
    }
    flush_folder_of(directory.root_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  return directory;
}

RunDirectory RunDirectory::at(const std::string& root) {
  std::string clean = fs::path(root).lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return RunDirectory(clean);
}

RunDirectory RunDirectory::open(const std::string& root) {
  RunDirectory directory = at(root);
  if (!fs::is_directory(directory.root())) {
    throw UsageError(
        fmt::format("-p: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>",
                    root));
  }
  if (!fs::is_directory(directory.configs())) {
    throw UsageError(fmt::format("-p: {}: not the folder of a run: it has no configs/", root));
  }
  for (const char* name : {"configs", "eval", "train", "train/checkpoints"}) {
    const std::string path = directory.root() + "/" + name;
    const auto user = user_behind_link(path);
    if (user) {
      throw UsageError(fmt::format(
          "-p: {}: it is a link to a folder, and one of the two belongs to the user {}: files of "
          "yours would be written there. Put a folder of your own in its place",
          path, *user));
    }
  }
  return directory;
}

std::string RunDirectory::folder_name() const {
  return fs::absolute(root_).lexically_normal().filename().string();
}

std::string RunDirectory::run_name() const {
  const std::string name = folder_name();
  return time_in(name).empty() ? name : name.substr(kTimeLength + 1);
}

std::string RunDirectory::evaluations(const std::string& time) const {
  return fmt::format("eval/{}_{}", time, run_name());
}

std::string RunDirectory::evaluation(const std::string& time, int64_t step) const {
  return fmt::format("{}/{}", evaluations(time), step);
}

std::string RunDirectory::config_file(const std::string& mode, const std::string& time) const {
  return fmt::format("{}/{}_{}.yaml", configs(), mode, time);
}

bool RunDirectory::is_without_training(const std::string& start) const {
  std::error_code failed;
  return fs::exists(config_file("eval", time_in(start)), failed);
}

std::string RunDirectory::last_config() const {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(configs(), failed)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().filename().string());
  }
  // "train_..." sorts after "eval_...", and times sort as text.
  if (names.empty()) {
    throw UsageError(
        fmt::format("-p: {}: the run has no config in configs/; give one with -b", root_));
  }
  return configs() + "/" + *std::max_element(names.begin(), names.end());
}

std::string take_time(const RunDirectory& directory, const std::string& mode,
                      const std::string& config) {
  // Another time zone, the end of summer time or a corrected clock may set the time back. Names
  // continue from the last name, so that they have the order of the starts.
  const std::string last = last_time(directory);
  std::string time = time_name();
  if (time <= last) time = second_after(last);
  for (;; time = second_after(time)) {
    const std::string evaluations = directory.root() + "/" + directory.evaluations(time);
    const std::string own = directory.config_file(mode, time);
    // A training claims the time by its config, an evaluation by its folder. Each makes its claim
    // before it looks for the other's claim.
    if (mode == "train") {
      write_file_atomically(own, config);
      if (!fs::exists(evaluations)) return time;
      file_calls().unlink(own.c_str());
    } else if (takes_folder(evaluations)) {
      if (!fs::exists(directory.config_file("train", time))) {
        write_file_atomically(own, config);
        return time;
      }
      ::rmdir(evaluations.c_str());
    }
  }
}

std::vector<FoundEvaluation> finished_evaluations(const RunDirectory& run, bool of_trainings) {
  std::vector<FoundEvaluation> found = find_evaluations(run.root());
  std::erase_if(found, [&](const FoundEvaluation& each) {
    std::error_code failed;
    return run.is_without_training(each.start) == of_trainings ||
           !fs::exists(scalars_file(each.folder), failed);
  });
  return found;
}

std::string scalars_file(const std::string& folder) { return folder + "/scalars.json"; }

OrderedMap<double> scalars_of(const FoundEvaluation& evaluation) {
  try {
    return read_scalars_file(scalars_file(evaluation.folder));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace stepop
