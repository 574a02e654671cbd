#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// A word as one types it into a shell: as it is when it is made of letters, digits and
/// `_-+=./:,@%` alone, else in single quotes. What is printed as a command can so be pasted.
std::string shell_word(std::string_view word);

}  // namespace stepop
