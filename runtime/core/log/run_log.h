#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepop {

class Console;

/// Lines for the user from the user's own code: on the console, above the progress bar, and in the
/// run's `log.txt`. Only for the thread that runs the training, not for threads that load data.
class RunLog {
 public:
  void info(std::string_view text);
  void warn(std::string_view text);

  /// Whether the run asks for the first time with this key: what is said once in a run asks so.
  bool is_first(const std::string& key) { return said_.insert(key).second; }

  /// Writes there from here on, first what was said before.
  void begin(Console& console);

 private:
  Console* console_ = nullptr;
  std::vector<std::pair<bool, std::string>> before_;  ///< Whether it is a warning, and the text.
  std::set<std::string> said_;
};

}  // namespace stepop
