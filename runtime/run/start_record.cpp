#include "runtime/run/start_record.h"

#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <tuple>

namespace stepop {
namespace {

/// The output of a command without its last newline; empty when it failed.
std::string output_of(const char* command) {
  std::FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  if (pclose(pipe) != 0) return "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string git_state() {
  const std::string commit = output_of("git rev-parse --short HEAD 2>/dev/null");
  if (commit.empty()) return "none";
  const std::string branch = output_of("git rev-parse --abbrev-ref HEAD 2>/dev/null");
  const std::string changes = output_of("git status --porcelain 2>/dev/null | head -n 1");
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
