#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// For the compiler's complaint that members in braces, `{.log_op = ..., .train_ops = ...}`, stand
/// in another order than in their struct: that order, as a line. Empty for other messages.
std::string member_order(std::string_view message);

}  // namespace stepop
