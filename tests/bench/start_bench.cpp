// From the command line to a first step that is done, saved and logged.
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {

void bench_start() {
  print_header("Start");
  const ScratchFolder scratch;
  const std::vector<std::string> ours = {STEPOP_BINARY_DIR "/stepop",
                                         "-b",
                                         STEPOP_SOURCE_DIR "/configs/digits.yaml",
                                         "-t",
                                         "-n",
                                         "bench",
                                         "--num_steps",
                                         "1",
                                         "--log_ops",
                                         "[]",
                                         "--datasets/validation",
                                         "null"};
  const auto times =
      take_turns(7, {[&] { return time_program(ours, scratch.path()); },
                     [&] {
                       return time_program({python(), "-c", "import torch"}, scratch.path());
                     }});
  print_row({"stepop -t --num_steps 1", "python -c \"import torch\"", speedup(times[0], times[1]),
             duration_text(median(times[0])), duration_text(median(times[1]))});
}

}  // namespace stepop::bench
