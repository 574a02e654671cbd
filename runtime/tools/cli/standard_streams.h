#pragma once

#include <string>
#include <system_error>

namespace stepop {

/// If a standard stream is closed, the next file would get its number, and messages would go into
/// that file, for example a checkpoint.
void open_standard_streams();

/// For commands that only print: a file with half of the output is no success. Returns `exit_code`;
/// throws Error when something could not be written.
int finish_output(int exit_code);

/// The message for an error that nothing else explains: of a file or folder, by std::filesystem; of
/// the standard output, by fmt::print.
std::string system_error_text(const std::system_error& error);

/// Prints `stepop: message` to the standard error, and returns `exit_code`. A failed write is
/// ignored: nothing more can be done.
int print_failure(const std::string& message, int exit_code);

}  // namespace stepop
