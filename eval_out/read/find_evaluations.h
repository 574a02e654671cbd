#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepop {

/// A folder `eval/<time>_<name>/<step>` of a run, or in it the folder of a named evaluation,
/// `eval/<time>_<name>/<step>/test`.
struct FoundEvaluation {
  std::string folder;
  std::string start;  ///< `<time>_<name>`
  int64_t step = 0;
  std::string name;     ///< Empty for the evaluation of the config's `eval_hook`.
  std::string outputs;  ///< The path of outputs.h5, or else of its .part; empty without either.
};

/// The evaluations of the run in folder `run`, sorted by the time of their start, then by step and
/// name.
std::vector<FoundEvaluation> find_evaluations(const std::string& run);

/// The outputs in the folder of an evaluation: `outputs.h5`, or else `outputs.h5.part`, or else
/// empty.
std::string outputs_in(const std::string& folder);

/// A hint for the message about a missing path whose .part exists; else empty.
std::string part_hint(const std::string& path);

/// The file to which a path refers: the file itself; the outputs in the folder of an evaluation; or
/// the newest outputs in the folder of a run, in its eval/ or in the folder of one start, where a
/// complete evaluation comes before an incomplete one. Throws UsageError for a missing path and for
/// a folder without outputs.
std::string find_outputs(const std::string& path);

}  // namespace stepop
