#include "runtime/tools/report/live_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/system/checksum.h"
#include "runtime/tools/report/comparison.h"
#include "runtime/tools/report/report.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRuns = 50;
constexpr std::chrono::milliseconds kPageWaits{500};

std::string random_path() {
  std::random_device random;
  std::string path = "/";
  for (int i = 0; i < 4; ++i) path += fmt::format("{:08x}", random());
  return path + "/";
}

/// Adds what changes when a run logs, saves, evaluates or ends: the names of its files, the times
/// of its folders, in which files are replaced, and the sizes of the files that grow. It reads no
/// file but the one of the run's state, which a running training touches every few seconds.
void add_state(const RunDirectory& run, Checksum& state) {
  const auto add = [&](const fs::path& path, auto what) {
    state.add(fmt::format("{}\n{}\n", path.string(), what));
  };
  const auto add_time = [&](const fs::path& path) {
    std::error_code failed;
    add(path, fs::last_write_time(path, failed).time_since_epoch().count());
  };
  const auto add_size = [&](const fs::path& path) {
    std::error_code failed;
    const auto size = fs::file_size(path, failed);
    add(path, failed ? 0 : size);
  };
  add(run.root(), name_of(read_run_status(run.process_file()).state));
  add_size(run.metrics_file());
  add_size(run.log_file());
  add_time(run.root());
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(run.root(), failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) {
      add_time(entry->path());
    } else {
      state.add(entry->path().filename().string() + "\n");
    }
  }
}

}  // namespace

LivePage::LivePage(std::function<std::vector<RunDirectory>()> find_runs, Options options)
    : find_runs_(std::move(find_runs)), options_(options), path_(random_path()) {
  take(look(""));
}

LivePage::Look LivePage::look(const std::string& state_before) const {
  const auto begin = Clock::now();
  Look found;
  try {
    const std::vector<RunDirectory> runs = find_runs_();
    Checksum state;
    for (const auto& run : runs) add_state(run, state);
    found.state = state.text();
    if (found.state != state_before) {
      const bool is_one = !options_.is_comparison && !runs.empty();
      found.title = is_one ? runs.front().folder_name() : fmt::format("{} runs", runs.size());
      found.data = shown_json(is_one ? report_data(runs.front()) : comparison_data(runs));
    }
  } catch (const std::exception& error) {
    // What the page had of the runs goes, since it may be wrong by now; the next look tries again.
    found.state.clear();
    found.title = "report";
    found.data = shown_json(write_json(
        nlohmann::json{{"notes", {"the runs could not be read: " + error_text(error)}}}));
  }
  found.took = Clock::now() - begin;
  return found;
}

void LivePage::take(Look look) {
  const std::chrono::duration<double> took = look.took;
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                             std::max(options_.pause, options_.rest * took));
  state_ = std::move(look.state);
  if (!look.data) return;
  title_ = std::move(look.title);
  tag_ = "\"" + content_checksum(*look.data) + "\"";
  data_ = std::make_shared<const std::string>(std::move(*look.data));
  page_ = nullptr;
}

void LivePage::look_again(bool is_page) {
  if (looking_.valid()) {
    if (looking_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    take(looking_.get());
  }
  if (Clock::now() < next_) return;
  looking_ = std::async(std::launch::async, [this, state = state_] { return look(state); });
  // Who opens the page sees no old one, if that is quick.
  if (is_page && looking_.wait_for(kPageWaits) == std::future_status::ready) take(looking_.get());
}

HttpAnswer LivePage::answer(const HttpRequest& request) {
  look_again(request.path == path_);
  if (request.path == path_ + "data") {
    return {.type = "application/json", .body = data_, .tag = tag_};
  }
  if (request.path != path_) {
    return {.status = 404, .body = std::make_shared<const std::string>("there is no such page\n")};
  }
  if (page_ == nullptr) {
    page_ = std::make_shared<const std::string>(
        options_.is_comparison ? comparison_page(*data_, title_, /*is_live=*/true)
                               : report_page(*data_, title_, /*is_live=*/true));
  }
  return {.type = "text/html; charset=utf-8", .body = page_};
}

std::vector<RunDirectory> runs_in_folder(const std::string& folder) {
  std::vector<std::string> roots;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string root = entry.path().string();
    if (!entry.path().filename().string().starts_with('.') && is_run(root)) roots.push_back(root);
  }
  std::ranges::sort(roots);
  if (roots.size() > kMostRuns) roots.erase(roots.begin(), roots.end() - kMostRuns);
  std::vector<RunDirectory> runs;
  for (const auto& root : roots) runs.push_back(RunDirectory::at(root));
  return runs;
}

}  // namespace stepop
