// How long a user waits for code of their own: the shipped template of a classifier, `stepop list`.
#include <stdlib.h>

#include <string>
#include <vector>

#include "runtime/tools/code/build_settings.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr const char* kStepop = STEPOP_BINARY_DIR "/stepop";

/// The compiler alone on the same source, without a precompiled header and without linking.
std::vector<std::string> plain_compile() {
  const BuildSettings& settings = build_settings();
  std::vector<std::string> words = {settings.compiler};
  words.insert(words.end(), settings.flags.begin(), settings.flags.end());
  words.insert(words.end(), {"-O1", "-fPIC", "-c", "mine.cpp", "-o", "mine.o"});
  return words;
}

}  // namespace

void bench_code() {
  print_header("Code of one's own");
  const ScratchFolder scratch;
  const std::string folder = scratch.path("mine");
  ::setenv("STEPOP_CACHE", scratch.path("cache").c_str(), 1);
  const double prepared = time_program({kStepop, "prepare"}, scratch.path());
  time_program({kStepop, "new", "mine"}, scratch.path());
  const std::string source = read_bytes(folder + "/mine.cpp");
  const std::vector<std::string> list = {kStepop, "list", "-b", "mine.yaml"};
  int edits = 0;
  const auto times = take_turns(3, {[&] {
                                      write_bytes(folder + "/mine.cpp",
                                                  source + "// " + std::to_string(++edits) + "\n");
                                      return time_program(list, folder);
                                    },
                                    [&] { return time_program(list, folder); },
                                    [&] { return time_program(plain_compile(), folder); }});
  print_row({"after an edit", "the compiler alone, no precompiled header",
             speedup(times[0], times[2]), duration_text(median(times[0])),
             duration_text(median(times[2]))});
  print_row({"unchanged", "the compiler alone, no precompiled header", speedup(times[1], times[2]),
             duration_text(median(times[1])), duration_text(median(times[2]))});
  print_row({"stepop prepare, once a build (0: it was done)",
             "the compiler alone, no precompiled header", median(times[2]) / prepared,
             duration_text(prepared), duration_text(median(times[2]))});
}

}  // namespace stepop::bench
