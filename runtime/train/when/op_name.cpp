#include "runtime/train/when/op_name.h"

#include <fmt/format.h>

namespace stepop {

OpName parse_op(const Config& config, std::string_view path, const std::string& text,
                const std::string& example) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    throw config.error(
        path, fmt::format("expected a split and an op, such as {}, found \"{}\"", example, text));
  }
  OpName name{text.substr(0, slash), text.substr(slash + 1)};
  if (!config.has("datasets/" + name.split)) {
    throw config.error(path, fmt::format("\"{}\" needs datasets/{}, which the config does not give",
                                         text, name.split));
  }
  return name;
}

}  // namespace stepop
