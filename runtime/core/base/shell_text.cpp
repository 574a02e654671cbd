#include "runtime/core/base/shell_text.h"

#include <fmt/format.h>

#include "runtime/core/base/shown_text.h"

namespace stepop {
namespace {

std::string& name_of_program() {
  static std::string name = "stepop";
  return name;
}

}  // namespace

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  // A terminal that shows the command would execute its control characters.
  const bool is_shown = shown_text(word) == word;
  std::string quoted = is_shown ? "'" : "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (!is_shown && (byte < 0x20 || byte >= 0x7f || c == '\'' || c == '\\')) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else if (c == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

const std::string& program_name() { return name_of_program(); }
void set_program_name(std::string name) { name_of_program() = std::move(name); }

std::string resume_command(const std::string& run_folder) {
  return shell_word(program_name()) + " -p " + shell_word(run_folder) + " -t";
}

}  // namespace stepop
