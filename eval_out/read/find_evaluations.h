#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepop {

/// A folder `eval/<time>_<name>/<step>` of a run, or one in it of an evaluation with a name,
/// `eval/<time>_<name>/<step>/test`.
struct FoundEvaluation {
  std::string folder;
  std::string start;  ///< `<time>_<name>`
  int64_t step = 0;
  std::string name;     ///< Empty for that of the config's `eval_hook`.
  std::string outputs;  ///< The path of its outputs.h5, else of its .part; empty without either.
};

/// The evaluations of the run in folder `run`, by the time of their start, then by step and name;
/// none when it has none.
std::vector<FoundEvaluation> find_evaluations(const std::string& run);

/// The outputs in the folder of an evaluation: `outputs.h5`, else `outputs.h5.part`, else empty.
std::string outputs_in(const std::string& folder);

/// What a message adds about a path where nothing is, when its .part is there; else empty.
std::string part_hint(const std::string& path);

/// The file that a path names: itself; the outputs in the folder of an evaluation; the newest ones
/// of the folder of a run, of its eval/ or of one start in that, where one that came to its end
/// goes before one that did not. Throws UsageError for a path that is not there and for a folder
/// without any.
std::string find_outputs(const std::string& path);

}  // namespace stepop
