#include "runtime/train/run/start_recorder.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/start_thread.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds kGrace{2};
constexpr int kLowPriority = 10;

/// If an earlier start has left the same patch, only that patch is kept.
void share_patch(const std::string& folder, GitTree& tree) {
  if (tree.patch.empty()) return;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name >= tree.patch || entry.path().extension() != ".patch") continue;
    const auto bytes = entry.file_size(failed);
    if (failed || static_cast<int64_t>(bytes) != tree.patch_bytes) continue;
    if (file_checksum(entry.path().string()) != tree.patch_checksum) continue;
    fs::remove(folder + "/" + tree.patch, failed);
    tree.patch = name;
    return;
  }
}

}  // namespace

StartRecorder::StartRecorder(std::string stem, std::string run, StartRecord record, Work work)
    : stem_(std::move(stem)),
      run_(std::move(run)),
      record_(std::move(record)),
      work_(std::move(work)) {
  record_.data_checksums = data_checksums_text(work_.checksums);
  try {
    write();
    thread_ = start_thread("collects what the start is made of", [this] { collect(); });
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

StartRecorder::~StartRecorder() {
  if (!thread_.joinable()) return;
  std::unique_lock guard(mutex_);
  if (!is_in_a_hurry_ || !is_in_a_hurry_()) done_.wait_for(guard, kGrace, [&] { return is_done_; });
  guard.unlock();
  stops_ = true;
  thread_.join();
}

void StartRecorder::collect() {
  // Affects only this thread, and the programs that it runs.
  ::setpriority(PRIO_PROCESS, 0, kLowPriority);
  try {
    collect_git();
    if (work_.checksums != DataChecksums::kNone) collect_data();
    record_.is_whole = true;
  } catch (const Interrupted&) {
    record_.failures.push_back("the start ended before all was collected");
  } catch (const std::exception& error) {
    record_.failures.push_back(error.what());
  }
  try {
    write();
  } catch (const Error&) {  // the record without this part exists
  }
  const std::lock_guard guard(mutex_);
  is_done_ = true;
  done_.notify_all();
}

void StartRecorder::collect_git() {
  const InterruptCheck interrupt = [this] {
    if (stops_) throw Interrupted("the start ended");
  };
  std::vector<std::string> tops;
  for (const auto& folder : work_.git_folders) {
    const auto top = git_top(folder);
    if (!top || std::find(tops.begin(), tops.end(), *top) != tops.end()) continue;
    const std::string number = tops.empty() ? "" : fmt::format(".{}", tops.size() + 1);
    tops.push_back(*top);
    GitTree tree = read_git_tree(*top, stem_ + number + ".patch", run_, interrupt);
    share_patch(fs::path(stem_).parent_path().string(), tree);
    record_.git.push_back(std::move(tree));
  }
}

void StartRecorder::collect_data() {
  const InterruptCheck interrupt = [this] {
    if (stops_) throw Interrupted("the start ended");
  };
  for (const auto& [key, path] : work_.data) {
    record_.data.set(key, look_at_data(path, work_.checksums, interrupt));
  }
}

void StartRecorder::write() const { write_file_atomically(stem_ + ".json", record_.to_json()); }

}  // namespace stepop
