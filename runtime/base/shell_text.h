#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// A word as one types it into a shell: as it is when it is made of letters, digits and
/// `_-+=./:,@%` alone, else in single quotes. What is printed as a command can so be pasted.
std::string shell_word(std::string_view word);

/// What people typed to start this program: `stepop` until main() says `build/stepop`.
const std::string& program_name();
void set_program_name(std::string name);

/// The command that goes on with the training of a run, to be pasted.
std::string resume_command(const std::string& run_folder);

}  // namespace stepop
