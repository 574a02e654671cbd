#pragma once

#include <string>
#include <vector>

#include "tests/scratch_folder.h"

namespace stepop {

/// What a reader of a page does: a file that it has, a change of a file, a command.
struct PageStep {
  std::string kind;     // "file", "change" or "command"
  std::string subject;  // the file's name, or the command
  std::string text;     // the file, the change, or what the page shows as printed
};

/// The steps of a page, in its order. A block is a step by the words after its fence:
///   ```python look.py   a file, as it stands; so with any other language
///   ```diff net.cpp     lines of a file that go (-) and come (+), between lines that stay
///   ```console          commands after "$ ", each followed by what it prints, errors included
/// Other blocks are no steps.
std::vector<PageStep> page_steps(const std::string& page);

/// Where what was printed differs from what a page shows; empty when it does not.
///
/// A line `...` stands for any number of lines; `...` within a line for the rest of it. Times of
/// day, durations, speeds, sizes of memory and the process are not compared. Numbers with a point
/// may differ by a twentieth of their value, or by 0.02; others are equal. The width of gaps
/// between columns does not count, as it depends on what is in them.
std::string page_difference(const std::string& shown, const std::string& printed);

/// Follows a page (`path` from the root of the tree) from top to bottom, by one shell in `folder`,
/// and checks each command: it prints what the page shows, and its status is 0 unless the page
/// shows an error of stepop. The shell begins with `before`, and with the tree's Python and
/// program.
void follow_page(const ScratchFolder& folder, const std::string& path,
                 const std::string& before = "");

}  // namespace stepop
