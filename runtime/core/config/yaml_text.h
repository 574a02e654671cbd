#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/config/value.h"

namespace stepop {

/// The plain scalar `text` by YAML 1.2's core schema: `true`, `null`, `0x10`, `1e-3`, `text`.
Value plain_scalar(const std::string& text);

struct BadByte {
  unsigned char byte;
  int line;  ///< Counted from 0.
  const char* what;
};

/// The first byte of `text` that no YAML may hold: not UTF-8, or a control character. yaml-cpp
/// replaces the former, and ends in silence at the control character 4.
std::optional<BadByte> find_bad_byte(std::string_view text);

/// What is wrong at the `line` of `text`, counted from 0, said for people who do not know
/// yaml-cpp's grammar; `message` is its own.
std::string explain_yaml(const std::string& message, std::string_view text, int line);

}  // namespace stepop
