#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// For the compiler's error that members in braces, `{.log_op = ..., .train_ops = ...}`, are not in
/// their struct's order: a line with that order. Empty for other messages.
std::string member_order(std::string_view message);

}  // namespace stepop
