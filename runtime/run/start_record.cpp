#include "runtime/run/start_record.h"

#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/system/child_process.h"

namespace stepop {
namespace {

/// The output of a command without its last newline; empty when it failed.
std::string output_of(std::vector<std::string> command) {
  try {
    const ChildResult result = run_child(std::move(command));
    if (result.exit_code != 0 || result.signal != 0) return "";
    return result.out.substr(0, result.out.find_last_not_of('\n') + 1);
  } catch (const Error&) {  // there is no such program
    return "";
  }
}

}  // namespace

std::string git_state() {
  const std::string commit = output_of({"git", "rev-parse", "--short", "HEAD"});
  if (commit.empty()) return "none";
  const std::string branch = output_of({"git", "rev-parse", "--abbrev-ref", "HEAD"});
  const std::string changes = output_of({"git", "status", "--porcelain"});
  return fmt::format("{} {}, {}", branch, commit, changes.empty() ? "clean" : "with changes");
}

std::string program_time() {
  timespec newest{};
  const auto look_at = [](dl_phdr_info* object, size_t, void* data) {
    // The program itself comes without its name.
    const char* path = *object->dlpi_name != 0 ? object->dlpi_name : "/proc/self/exe";
    struct stat status {};
    auto& time = *static_cast<timespec*>(data);
    const timespec& its = status.st_mtim;
    if (::stat(path, &status) != 0) return 0;  // the kernel's own object is no file
    if (std::tie(its.tv_sec, its.tv_nsec) > std::tie(time.tv_sec, time.tv_nsec)) time = its;
    return 0;
  };
  dl_iterate_phdr(look_at, &newest);
  std::tm parts{};
  gmtime_r(&newest.tv_sec, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:09}", text.data(), newest.tv_nsec);
}

std::string host_name() {
  std::array<char, 256> buffer{};
  return gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "unknown";
}

}  // namespace stepop
