#include "runtime/run/start_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

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

std::string host_name() {
  std::array<char, 256> buffer{};
  return gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "unknown";
}

}  // namespace stepop
