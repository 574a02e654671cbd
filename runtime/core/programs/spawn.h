#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace stepop {

/// A program to start, and what it gets from this process.
struct Spawn {
  /// The program, a path or a name on the PATH, then its arguments.
  std::vector<std::string> words;
  /// This program again, even if its file was replaced meanwhile; `words[0]` is its name.
  bool is_this_program = false;
  /// Changes of this process's environment: `NAME=value`, or `NAME` to leave a variable out.
  std::vector<std::string> environment = {};

  /// Open files of this process that become the standard streams.
  int in = kNothing;
  int out = 1;
  int err = 2;
  /// The program also gets the open files that are not closed on exec, such as a pipe that a shell
  /// made for it. Otherwise all others are closed: an HDF5 file would keep its lock.
  bool keeps_files = false;

  /// A session of its own also keeps signals of the terminal away.
  bool has_own_session = false;
  /// The signal that the program gets when this process dies, for whatever reason; 0: none. Only
  /// for this program again, whose main calls follow_parent, and from the main thread.
  int signal_when_we_die = 0;

  static constexpr int kNothing = -1;  ///< As standard input: empty.
};

/// Starts a program in its own process group, and does not wait. The program blocks no signal, and
/// ignores neither SIGPIPE nor SIGXFSZ. Throws Error when it cannot be started.
pid_t spawn(Spawn program);

/// The first call in main: arranges for the signal that the parent's Spawn asks for. Ends the
/// process if the parent is already gone.
void follow_parent();

}  // namespace stepop
