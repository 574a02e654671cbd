#include "runtime/core/system/look_at_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

bool is_later(const timespec& a, const timespec& b) {
  return std::tie(a.tv_sec, a.tv_nsec) > std::tie(b.tv_sec, b.tv_nsec);
}

std::string reason_text(int error) { return std::generic_category().message(error); }

/// The checksum of a file's bytes; empty, with a reason, when the file cannot be read.
std::string checksum_of_bytes(const std::string& path, const InterruptCheck& interrupt,
                              std::string& failure) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string buffer(1 << 20, '\0');
  Checksum sum;
  while (file) {
    if (interrupt) interrupt();
    const ssize_t count = ::read(file.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    if (count == 0) return sum.text();
    sum.add({buffer.data(), static_cast<size_t>(count)});
  }
  failure = fmt::format("{}: cannot be read: {}", path, reason_text(errno));
  return "";
}

/// All files below a folder, by their relative paths.
class Listing {
 public:
  Listing(std::string root, const InterruptCheck& interrupt, double seconds)
      : root_(std::move(root)), interrupt_(interrupt), seconds_(seconds) {}

  /// Sets everything but the content.
  void read(DataFile& file) {
    walk(root_);
    file.files = static_cast<int64_t>(files_.size());
    for (const auto& each : files_) file.bytes += each.bytes;
    if (!files_.empty()) file.modified = utc_time(newest_);
    if (!failure_.empty()) {
      file.failure = failure_;
      return;
    }
    std::sort(files_.begin(), files_.end(),
              [](const File& a, const File& b) { return a.name < b.name; });
    Checksum sum;
    for (const auto& each : files_) sum.add(fmt::format("{}\n{}\n", each.name, each.bytes));
    file.listing = sum.text();
  }

  /// The checksum of the names and bytes of all files.
  void read_content(DataFile& file) const {
    Checksum sum;
    for (const auto& each : files_) {
      const std::string own = checksum_of_bytes(root_ + "/" + each.name, interrupt_, file.failure);
      if (!file.failure.empty()) return;
      sum.add(fmt::format("{}\n{}\n", each.name, own));
    }
    file.content = sum.text();
  }

 private:
  struct File {
    std::string name;
    int64_t bytes;
  };

  void walk(const std::string& folder) {
    std::error_code failed;
    fs::recursive_directory_iterator entry(folder, failed);
    for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      add(entry->path().string());
      if (!failure_.empty()) return;
    }
    if (failed) failure_ = "cannot be listed: " + failed.message();
  }

  void add(const std::string& path) {
    constexpr size_t kLookEvery = 256;
    if (++seen_ % kLookEvery == 0) {
      if (interrupt_) interrupt_();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_;
      if (time.count() > seconds_) {
        failure_ = fmt::format("not listed: it took more than {:g} s, and {} files were found",
                               seconds_, with_thousands(static_cast<int64_t>(files_.size())));
        return;
      }
    }
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    files_.push_back({path.substr(root_.size() + 1), status.st_size});
    if (is_later(status.st_mtim, newest_)) newest_ = status.st_mtim;
  }

  std::string root_;
  const InterruptCheck& interrupt_;
  double seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<File> files_;
  timespec newest_{};
  size_t seen_ = 0;
  std::string failure_;
};

}  // namespace

std::string utc_time(const timespec& time) {
  std::tm parts{};
  gmtime_r(&time.tv_sec, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:09}", text.data(), time.tv_nsec);
}

DataFile look_at_data(const std::string& path, DataChecksums how, const InterruptCheck& interrupt,
                      double listing_seconds) {
  DataFile file{.path = path};
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    file.failure = errno == ENOENT ? "no such file" : "cannot be read: " + reason_text(errno);
    return file;
  }
  if (S_ISDIR(status.st_mode)) {
    file.is_folder = true;
    std::string root = path;
    while (root.size() > 1 && root.ends_with('/')) root.pop_back();
    Listing listing(root, interrupt, listing_seconds);
    listing.read(file);
    if (how == DataChecksums::kContent && file.failure.empty()) listing.read_content(file);
    return file;
  }
  file.files = 1;
  file.bytes = status.st_size;
  file.modified = utc_time(status.st_mtim);
  if (how == DataChecksums::kContent && S_ISREG(status.st_mode)) {
    file.content = checksum_of_bytes(path, interrupt, file.failure);
  }
  return file;
}

std::string change_of_data(const DataFile& before, const DataFile& now) {
  if (before.modified.empty() && !before.is_folder) return "";  // nothing was known about the file
  const auto count = [](int64_t number) { return with_thousands(number); };
  if (now.files == 0 && !now.is_folder) {
    return now.failure == "no such file" ? "is gone" : now.failure;
  }
  if (before.is_folder != now.is_folder) {
    return before.is_folder ? "is a file, it was a folder" : "is a folder, it was a file";
  }
  const bool are_listed = !before.is_folder || (!before.listing.empty() && !now.listing.empty());
  if (!are_listed) return "";
  if (before.files != now.files) {
    return fmt::format("has {} files, it had {}", count(now.files), count(before.files));
  }
  if (before.bytes != now.bytes) {
    return fmt::format("has {} bytes, it had {}", count(now.bytes), count(before.bytes));
  }
  if (before.listing != now.listing) return "has files of other names or sizes";
  const bool has_content = !before.content.empty() && !now.content.empty();
  if (has_content && before.content != now.content) return "has another content, of the same size";
  if (has_content || before.modified == now.modified) return "";
  return fmt::format(
      "was written at {}, the one that was trained on at {}: it has the same size, its content may "
      "differ",
      now.modified, before.modified);
}

}  // namespace stepop
