#pragma once

#include <cstdlib>
#include <string>

#include "tests/cli/command.h"

namespace stepop {

/// The command of a browser that runs without a screen; empty when none is installed. The
/// environment variable STEPOP_BROWSER names another.
inline std::string find_browser() {
  const ScratchFolder folder;
  const CommandResult found =
      run_in(folder,
             "for name in \"$STEPOP_BROWSER\" chromium chromium-browser google-chrome "
             "google-chrome-stable; do command -v \"$name\" && break; done");
  return found.out.substr(0, found.out.find('\n'));
}

/// What a page is after its scripts ran, and what they wrote to the console.
struct OpenedPage {
  std::string document;
  std::string console;
};

/// Opens an address, in a window of `width` pixels, for ten seconds of the page's own clock, which
/// does not run while something is loaded.
inline OpenedPage open_address(const std::string& browser, const std::string& address,
                               int width = 1200) {
  const ScratchFolder folder;
  // Root has no sandbox; the page is ours.
  const CommandResult result =
      run_in(folder, "HOME=\"$PWD\" timeout 120 '" + browser +
                         "' --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage "
                         "--user-data-dir=\"$PWD/profile\" --enable-logging=stderr "
                         "--virtual-time-budget=10000 --window-size=" +
                         std::to_string(width) + ",1000 --dump-dom '" + address + "'");
  OpenedPage opened{result.out, ""};
  for (size_t begin = 0; begin < result.err.size();) {
    const size_t end = std::min(result.err.find('\n', begin), result.err.size());
    const std::string line = result.err.substr(begin, end - begin);
    if (line.find("CONSOLE") != std::string::npos) opened.console += line + "\n";
    begin = end + 1;
  }
  return opened;
}

/// Opens an HTML file of ours, from the file system. `script` runs in it afterwards; it may add to
/// the document what it found.
inline OpenedPage open_page(const std::string& browser, const std::string& path,
                            const std::string& script, int width = 1200) {
  const ScratchFolder folder;
  std::string page = read_bytes(path);
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>\n");
  folder.write("page.html", page);
  return open_address(browser, "file://" + folder.path("page.html"), width);
}

}  // namespace stepop
