#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/value/value.h"

namespace stepop {

/// The value of the plain scalar `text` in YAML 1.2's core schema: `true`, `null`, `0x10`, `1e-3`,
/// `text`.
Value plain_scalar(const std::string& text);

struct BadByte {
  unsigned char byte;
  int line;  ///< Counted from 0.
  const char* what;
};

/// The first byte of `text` that is not allowed in YAML: not UTF-8, or a control character.
/// yaml-cpp replaces the former, and stops without an error at control character 4.
std::optional<BadByte> find_bad_byte(std::string_view text);

/// Explains the error at `line` of `text`, counted from 0, for users who do not know yaml-cpp's
/// grammar; `message` is yaml-cpp's message.
std::string explain_yaml(const std::string& message, std::string_view text, int line);

}  // namespace stepop
