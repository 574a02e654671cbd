#include "runtime/train/run/live_change.h"

#include <sys/stat.h>

#include <ctime>
#include <filesystem>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

void move(const std::string& from, const std::string& to) {
  std::error_code failed;
  std::filesystem::rename(from, to, failed);
  if (failed) throw Error("cannot rename " + from + " to " + to + ": " + failed.message());
}

}  // namespace

LiveChange::LiveChange(const RunDirectory& directory)
    : path_(directory.root() + "/train/change.yaml"), configs_(directory.configs()) {}

bool LiveChange::is_there(std::chrono::steady_clock::time_point now) {
  using namespace std::chrono_literals;
  if (now < next_look_) return false;
  next_look_ = now + 1s;
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  // A file with a time in the future, by another machine's clock, is taken at once.
  const double age = std::difftime(std::time(nullptr), status.st_mtim.tv_sec);
  return age > 1 || age < -1;
}

void LiveChange::take(const std::string& time) const {
  move(path_, configs_ + "/change_" + time + ".yaml");
}

std::string LiveChange::refuse() const {
  move(path_, path_ + ".refused");
  return path_ + ".refused";
}

}  // namespace stepop
