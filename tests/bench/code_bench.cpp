// How long a user waits for code of their own: the templates of `stepop new`, edited and started.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

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
std::vector<std::string> plain_compile(const std::string& source) {
  const BuildSettings& settings = build_settings();
  std::vector<std::string> words = {settings.compiler};
  words.insert(words.end(), settings.flags.begin(), settings.flags.end());
  words.insert(words.end(), {"-O1", "-fPIC", "-c", source, "-o", source + ".o"});
  return words;
}

double processor_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The processor time of a program and of all that it starts.
double processor_time(const std::vector<std::string>& words, const std::string& folder) {
  const double before = processor_seconds_of_children();
  time_program(words, folder);
  return processor_seconds_of_children() - before;
}

/// Saves a source with another line.
void edit(const std::string& path, const std::string& source) {
  static int edits = 0;
  write_bytes(path,
              fmt::format("{}[[maybe_unused]] static const int kEdit = {};\n", source, ++edits));
}

/// From the save of a template to the end of a start with one step, by processor time; the headers
/// are precompiled.
void bench_template(const ScratchFolder& scratch, const std::string& kind) {
  const std::string name = "my_" + kind;
  const std::string folder = scratch.path(name);
  time_program({kStepop, "new", name, "--template", kind}, scratch.path());
  const std::string path = folder + "/" + name + ".cpp";
  const std::string source = read_bytes(path);
  const auto edited = [&](std::vector<std::string> more) {
    edit(path, source);
    std::vector<std::string> words = {kStepop,       "-b", name + ".yaml", "-n",  "x", "-t",
                                      "--num_steps", "1",  "--eval_hook",  "null"};
    words.insert(words.end(), more.begin(), more.end());
    return processor_time(words, folder);
  };
  const auto times = take_turns(3, {[&] { return edited({"-d"}); }, [&] { return edited({}); }});
  const double alone = processor_time(plain_compile(path), folder);
  const char* kBaseline = "stepop's compiler alone, no precompiled header";
  for (const size_t i : {0, 1}) {
    print_row({fmt::format("{}, {}", kind, i == 0 ? "a debug run" : "a training"), kBaseline,
               alone / median(times[i]), duration_text(median(times[i])), duration_text(alone)});
  }
}

/// One of two sources edited, against both.
void bench_two_sources(const ScratchFolder& scratch) {
  time_program({kStepop, "new", "first"}, scratch.path());
  time_program({kStepop, "new", "second", "--template", "autoencoder"}, scratch.path());
  const std::string folder = scratch.path("first");
  const std::string paths[] = {folder + "/first.cpp", scratch.path("second/second.cpp")};
  const std::string sources[] = {read_bytes(paths[0]), read_bytes(paths[1])};
  const auto edited = [&](bool is_both) {
    if (is_both) edit(paths[0], sources[0]);
    edit(paths[1], sources[1]);
    return time_program(
        {kStepop, "list", "-b", "first.yaml", "--code", "[first.cpp, ../second/second.cpp]"},
        folder);
  };
  edited(true);
  const auto times = take_turns(3, {[&] { return edited(false); }, [&] { return edited(true); }});
  print_row({"after an edit of one of two sources", "after an edit of both",
             speedup(times[0], times[1]), duration_text(median(times[0])),
             duration_text(median(times[1]))});
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
  const auto times =
      take_turns(3, {[&] {
                       edit(folder + "/mine.cpp", source);
                       return time_program(list, folder);
                     },
                     [&] { return time_program(list, folder); },
                     [&] { return time_program(plain_compile("mine.cpp"), folder); }});
  print_row({"after an edit", "the compiler alone, no precompiled header",
             speedup(times[0], times[2]), duration_text(median(times[0])),
             duration_text(median(times[2]))});
  print_row({"unchanged", "the compiler alone, no precompiled header", speedup(times[1], times[2]),
             duration_text(median(times[1])), duration_text(median(times[2]))});
  print_row({"stepop prepare, once a build (0: it was done)",
             "the compiler alone, no precompiled header", median(times[2]) / prepared,
             duration_text(prepared), duration_text(median(times[2]))});
  bench_two_sources(scratch);
  for (const std::string kind : {"classifier", "regression", "table", "autoencoder", "gan",
                                 "loss_model", "language_model"}) {
    bench_template(scratch, kind);
  }
}

}  // namespace stepop::bench
