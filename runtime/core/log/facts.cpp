#include "runtime/core/log/facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "runtime/core/base/json_text.h"

namespace stepop {
namespace {

int facts_descriptor = -1;  // of the process, as its standard output is

}  // namespace

void begin_facts() {
  if (facts_descriptor >= 0) return;
  std::fflush(stdout);
  facts_descriptor = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (facts_descriptor >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void say_fact(std::string_view name, std::string_view text) {
  if (facts_descriptor < 0) return;
  const std::string line = fmt::format("{{{}: {}}}\n", json_text(name), json_text(text));
  [[maybe_unused]] const auto written = ::write(facts_descriptor, line.data(), line.size());
}

}  // namespace stepop
