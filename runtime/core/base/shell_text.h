#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// A word for a shell: unchanged when it only has letters, digits and `_-+=./:,@%`, otherwise in
/// single quotes. So a printed command can be pasted.
std::string shell_word(std::string_view word);

/// How this program was started, such as `build/stepop`: `stepop` until main() sets it.
const std::string& program_name();
void set_program_name(std::string name);

/// The command that resumes the training of a run, ready to paste.
std::string resume_command(const std::string& run_folder);

}  // namespace stepop
