#include "runtime/train/run/live_change.h"

#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include "runtime/core/base/error.h"
#include "runtime/core/system/append_file.h"

namespace stepop {
namespace {

void move(const std::string& from, const std::string& to) {
  std::error_code failed;
  std::filesystem::rename(from, to, failed);
  if (failed) throw Error("cannot rename " + from + " to " + to + ": " + failed.message());
}

/// The time of the last writing; nothing for what is no file.
std::optional<std::time_t> written(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status.st_mtim.tv_sec;
}

}  // namespace

LiveChange::LiveChange(const RunDirectory& directory)
    : root_(directory.root()), configs_(directory.configs()) {}

std::string LiveChange::path() const {
  const std::string inner = root_ + "/train/change.yaml";
  const std::string outer = root_ + "/change.yaml";
  return !written(inner) && written(outer) ? outer : inner;
}

bool LiveChange::is_there(std::chrono::steady_clock::time_point now) {
  using namespace std::chrono_literals;
  if (now < next_look_) return false;
  next_look_ = now + 1s;
  const auto time = written(path());
  if (!time) return false;
  // A file with a time in the future, by another machine's clock, is taken at once.
  const double age = std::difftime(std::time(nullptr), *time);
  return age > 1 || age < -1;
}

void LiveChange::take(const std::string& file, const std::string& time) const {
  move(file, configs_ + "/change_" + time + ".yaml");
}

std::string LiveChange::refuse(const std::string& file, const std::string& reason) {
  std::string comment = "\n# refused: ";
  for (const char letter : reason) comment += letter == '\n' ? "\n#   " : std::string(1, letter);
  try {
    AppendFile(file).append(comment + "\n");
  } catch (const Error&) {
    // The log has the reason, too.
  }
  move(file, file + ".refused");
  return file + ".refused";
}

}  // namespace stepop
