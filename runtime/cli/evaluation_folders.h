#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/log/console.h"
#include "runtime/loop/evaluation.h"
#include "runtime/run/run_directory.h"
#include "runtime/run/run_lock.h"

namespace stepop {

/// Where evaluations without a training write, `eval/<time>_<name>/<step>`: into the folder of one
/// that was killed, to go on with it, else into one of this start.
/// `eval/<time>_<name>/process.json` tells that a process is at it.
class EvaluationFolders {
 public:
  /// The rows in a folder behind which this evaluation would go on; see rows_left_behind.
  using RowsIn = std::function<std::optional<EvaluationRows>(const std::string& folder)>;

  /// `config` is the start's resolved config; `time` one that it has taken, empty when it has none.
  EvaluationFolders(const RunDirectory& run, std::string config, std::string time);

  /// The folder for an evaluation of `step`. Says so when it goes on with another's.
  std::string take(int64_t step, const RowsIn& rows_in, Console& console);

  /// All of them came to their end.
  void end();

 private:
  std::optional<std::string> go_on(int64_t step, const RowsIn& rows_in, Console& console);
  bool lock(const std::string& time);

  const RunDirectory& run_;
  std::string config_;
  std::string time_;
  std::map<std::string, RunLock> locks_;  ///< By the times of the starts.
};

}  // namespace stepop
