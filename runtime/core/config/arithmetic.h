#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/value/value.h"

namespace stepop {

/// What a text such as `{num_epochs} * 2` computes: `+`, `-`, `*`, `/`, `//`, `min(...)`,
/// `max(...)` and parentheses over numbers and references, with Python's rules: `7 / 2` is 3.5 and
/// `7 // 2` is 3. Operators stand between spaces, so that `{folder}/{name}` and `{a}-{b}` stay
/// texts. `find` gives the value of a reference, without its braces.
///
/// Nothing for a text that is no such expression, that has no reference, or one of whose references
/// leads to something else than a number. Throws Error for a division by 0 and for a whole number
/// of more than 64 bits.
std::optional<Value> calculate(const std::string& text,
                               const std::function<Value(const std::string& reference)>& find);

}  // namespace stepop
