#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/code_run.h"

namespace stepop {
namespace code_test {

TEST_CASE("a new iterator is compiled once, trains, goes on with its own copy and is evaluated") {
  const ScratchFolder folder;
  make_new(folder, "denoiser");
  // Rates that do not depend on how long the training is, which the resumes change.
  run_in(folder, "sed -i 's/steps: end/steps: 630/' denoiser.yaml");
  const auto first = run_with_cache(folder, "stepop -n first -b denoiser.yaml -t" + kShort);
  REQUIRE_MESSAGE(first.exit_code == 0, first.err);
  CHECK(first.err == "compiling denoiser.cpp\n");
  const std::string run = only_run(folder);
  const std::string time = std::filesystem::path(run).filename().string().substr(0, 19);
  CHECK(read_bytes(folder / (run + "/code/" + time + "/denoiser.cpp")) ==
        read_bytes(folder / "denoiser.cpp"));

  // Unchanged, it is not compiled again, wherever it lies.
  const auto moved = run_with_cache(folder,
                                    "mkdir elsewhere && cp denoiser.* elsewhere && cd elsewhere && "
                                    "stepop -n second -b denoiser.yaml -t" +
                                        kShort);
  CHECK(moved.exit_code == 0);
  CHECK(moved.err == "");

  // Its components are listed with its config. Columns are as wide as the longest name.
  const auto list = run_with_cache(folder, "stepop list -b denoiser.yaml | tr -s ' '");
  CHECK(list.exit_code == 0);
  CHECK(contains(list.out, "\n DenoiserNetwork Three linear layers.\n"));
  CHECK(contains(list.out, "\n Denoiser Fits a function.\n"));
  CHECK(contains(list.out, "\n DenoiserData A function of two numbers, with noise.\n"));

  // A copy that others may have written is run, with a warning.
  const auto open_to_all =
      run_with_cache(folder, "chmod 777 " + run + "/code; stepop -p " + run +
                                 " -t --num_epochs 3; s=$?; chmod 700 " + run + "/code; exit $s");
  CHECK(open_to_all.exit_code == 0);
  CHECK(open_to_all.err ==
        "warning: the code in " + run + "/code is run, and others can write it (mode 777)\n");

  // A copy that is damaged is reported, with a way out.
  const std::string copy = folder / (run + "/code/" + time);
  const std::string sources = read_bytes(copy + "/sources.json");
  write_bytes(copy + "/sources.json", "{");
  const auto damaged = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 4");
  CHECK(damaged.exit_code == 1);
  CHECK(contains(damaged.err, copy + "/sources.json: damaged: "));
  CHECK(contains(damaged.err, "; remove that folder to resume with the "));
  write_bytes(copy + "/sources.json", sources);

  // A resume takes the run's copy, and says what changed since.
  run_in(folder, "sed -i 's/\"mse\", loss}/\"error\", loss}/' denoiser.cpp");
  const auto resumed = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 4");
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.err == "");
  CHECK(contains(resumed.out,
                 "code      the run's own copy; since it was made denoiser.cpp "
                 "changed: --current-code takes what is there now\n"));
  CHECK(contains(resumed.out, "validation/eval_op: mse "));
  const auto current =
      run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 5 --current-code");
  CHECK(current.exit_code == 0);
  CHECK(current.err == "compiling denoiser.cpp\n");
  CHECK(contains(current.out, "validation/eval_op: error "));
  // From now on that is the run's code.
  const auto again = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 6");
  CHECK(contains(again.out, "validation/eval_op: error "));
  CHECK_FALSE(contains(again.out, "the run's own copy"));

  // The originals may be gone, and so may the cache's folder.
  const auto bare =
      run_with_cache(folder, "rm -r denoiser.cpp cache\nstepop -p " + run + " -t --num_epochs 7");
  CHECK_MESSAGE(bare.exit_code == 0, bare.err);
  CHECK(contains(bare.out, "since it was made denoiser.cpp is gone"));
  const auto evaluated = run_with_cache(folder, "stepop -p " + run);
  CHECK(evaluated.exit_code == 0);
}

TEST_CASE("code that a resume adds leaves the run with its own copy of the rest") {
  const ScratchFolder folder;
  make_new(folder, "denoiser");
  REQUIRE(run_with_cache(folder, "stepop -n first -b denoiser.yaml -t" + kShort).exit_code == 0);
  const std::string run = only_run(folder);
  folder.write("more/later.cpp", "int later = 1;\n");
  run_in(folder, "sed -i 's/\"mse\", loss}/\"error\", loss}/' denoiser.cpp");
  const auto added =
      run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 3 --code/+ more/later.cpp");
  REQUIRE_MESSAGE(added.exit_code == 0, added.err);
  CHECK(contains(added.out, "validation/eval_op: mse "));
  // Now the copy has both; the next resume knows what is a copy of what.
  const auto again = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 4");
  REQUIRE_MESSAGE(again.exit_code == 0, again.err);
  CHECK(contains(again.out, "validation/eval_op: mse "));
  CHECK(contains(again.out, "since it was made denoiser.cpp changed"));
}

TEST_CASE("a header that changes is compiled again, and comes back without it") {
  const ScratchFolder folder;
  folder.write("parts of it/answer.h", "inline const char* answer() { return \"one\"; }\n");
  write_source(folder,
               "#include \"parts of it/answer.h\"\n"
               "stepop::Logs say(const stepop::CallbackArguments&) { return {}; }\n"
               "STEPOP_REGISTER_CALLBACK(say, say, {answer()});\n");
  const auto first = run_with_cache(folder, "stepop list -b one.yaml | grep -A1 ' say '");
  CHECK(first.err == "compiling one.cpp\n");
  CHECK(contains(first.out, "one"));
  folder.write("parts of it/answer.h", "inline const char* answer() { return \"two\"; }\n");
  // What nobody used for long goes with the next compile.
  const auto second =
      run_with_cache(folder,
                     "touch cache/old-1.so; touch -d '61 days ago' cache/old.so.json\n"
                     "touch cache/past-1.o; touch -d '3 days ago' cache/past.o.json\n"
                     "stepop list -b one.yaml | grep -A1 ' say '");
  CHECK(second.err == "compiling one.cpp\n");
  CHECK(contains(second.out, "two"));
  for (const std::string gone : {"old.so.json", "old-1.so", "past.o.json", "past-1.o"}) {
    CHECK_FALSE(std::filesystem::exists(folder / ("cache/" + gone)));
  }
  folder.write("parts of it/answer.h", "inline const char* answer() { return \"one\"; }\n");
  const auto third = run_with_cache(folder, "stepop list -b one.yaml | grep -A1 ' say '");
  CHECK(third.err == "");
  CHECK(contains(third.out, "one"));
}

TEST_CASE("two starts at once compile once") {
  const ScratchFolder folder;
  write_source(folder, "");
  folder.write("one.cpp", "int one = 1;\n");
  folder.write("slow.sh",
               "#!/bin/sh\ncase \"$*\" in *' -c '*) for i in $(seq 600); do\n"
               "grep -q waiting \"$SAID\"/?.txt && break; sleep 0.1; done;; esac\n"
               "exec c++ \"$@\"\n");
  const auto both = run_with_cache(folder,
                                   "chmod +x slow.sh; export STEPOP_CXX=./slow.sh SAID=\"$PWD\"\n"
                                   "stepop list -b one.yaml >/dev/null 2>a.txt &\n"
                                   "stepop list -b one.yaml >/dev/null 2>b.txt\n"
                                   "wait; cat a.txt b.txt | sort");
  CHECK(both.out ==
        "compiling one.cpp\nwaiting for another stepop, which compiles the same code\n");
}

TEST_CASE("a source that is saved while it compiles, and a damaged cache, give no wrong library") {
  const ScratchFolder folder;
  write_source(folder, "");
  folder.write("one.cpp", "int one = 1;\n");
  folder.write("saving.sh",
               "#!/bin/sh\ncase \"$*\" in *' -c '*) echo 'int two = 2;' >> one.cpp;; esac\nexec "
               "c++ \"$@\"\n");
  const auto saved = run_with_cache(
      folder,
      "chmod +x saving.sh; STEPOP_CXX=./saving.sh; export STEPOP_CXX; stepop list -b one.yaml");
  CHECK(saved.exit_code == 1);
  CHECK(contains(saved.err, "stepop: one.cpp changed while it was compiled: start again\n"));
  CHECK(run_with_cache(folder, "stepop list -b one.yaml").err == "compiling one.cpp\n");
  const auto damaged = run_with_cache(folder,
                                      "for list in cache/*.json; do echo '[{\"file\": 3}, 7]' > "
                                      "$list; done; stepop list -b one.yaml");
  CHECK(damaged.exit_code == 0);
  CHECK(damaged.err == "compiling one.cpp\n");
}

TEST_CASE("what others may have written in the cache is compiled again") {
  const ScratchFolder folder;
  write_source(folder, "");
  folder.write("one.cpp", "int one = 1;\n");
  CHECK(run_with_cache(folder, "stepop list -b one.yaml").err == "compiling one.cpp\n");
  CHECK(run_with_cache(folder, "stepop list -b one.yaml").err == "");
  const std::string chmod = "chmod 666 cache/*.so cache/*.o && ";
  CHECK(run_with_cache(folder, chmod + "stepop list -b one.yaml").err == "compiling one.cpp\n");
}

TEST_CASE("the guide's hook ends a training, and a resume knows what it tracked") {
  const ScratchFolder folder;
  make_new(folder, "mine");
  const std::string guide = read_bytes(STEPOP_SOURCE_DIR "/iterators/IN_DEPTH.md");
  const size_t begin = guide.find("class StopBelow");
  REQUIRE(begin != std::string::npos);
  folder.write("stop.cpp", "#include <stepop/stepop.h>\n" +
                               guide.substr(begin, guide.find("```", begin) - begin));
  folder.write("stop.yaml",
               "code: [mine.cpp, stop.cpp]\n"
               "hooks:\n  stop: {class: StopBelow, metric: validation/eval_op/mse, value: 0}\n");
  const std::string start = "stepop -n x -b mine.yaml stop.yaml -t" + kShort;
  const auto checked = run_with_cache(folder, start + " --check");
  CHECK_MESSAGE(checked.exit_code == 0, checked.err);
  CHECK(contains(checked.out,
                 "hooks     not run, but for initialize; in this order: iterator, "
                 "stop (StopBelow)\n"));
  const auto trained = run_with_cache(folder, start);
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  const std::string run = only_run(folder);
  CHECK(contains(read_bytes(folder / (run + "/train/log.txt")), ", the value number 2\n"));
  // The resume calls it again with the last evaluation, in the state of before that.
  const std::string more = "stepop -p " + run + " -t --num_epochs 3 --hooks/stop/value ";
  const auto stopped = run_with_cache(folder, more + "1e9");
  CHECK_MESSAGE(stopped.exit_code == 0, stopped.err);
  CHECK(contains(stopped.out, ", the value number 2\n"));
  CHECK(
      contains(stopped.out, "ended: the hook stop: validation/eval_op/mse is below 1000000000\n"));
  const auto on = run_with_cache(folder, more + "0");
  CHECK(contains(on.out, ", the value number 3\n"));
  CHECK(contains(on.out, "ended: all 12 steps are done\n"));
}

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

TEST_CASE("a callback of your own runs over outputs that are there, initialize before each") {
  const ScratchFolder folder;
  make_new(folder, "mine");
  run_in(
      folder,
      "sed -i -e 's/^STEPOP_REGISTER_ITERATOR/stepop::Logs rows(const stepop::CallbackArguments\\& "
      "a) {\\n  return {.scalars = {{\"rows\", a.data_out.rows()}}};\\n}\\n"
      "STEPOP_REGISTER_CALLBACK(rows, rows, {\"Counts.\"});\\n&/' "
      "-e 's/^  stepop::StepOps step_op/  void initialize() override { "
      "context().log.info(\"weights in place\"); }\\n&/' mine.cpp");
  const auto trained = run_with_cache(folder, "stepop -n x -b mine.yaml -t" + kShort);
  REQUIRE(trained.exit_code == 0);
  CHECK(count(trained.out, "weights in place\n") == 1);
  const auto each = run_with_cache(folder, "stepop -p " + only_run(folder) + " --eval_all true");
  REQUIRE(each.exit_code == 0);
  const auto evaluated = count(each.out, "\nevaluating logs/");
  CHECK(evaluated > 0);
  // And before the checks of the start.
  CHECK(count(each.out, "weights in place\n") == evaluated + 1);
  const auto looked = run_with_cache(folder, "stepop eval " + only_run(folder) + " -c rows");
  CHECK_MESSAGE(looked.exit_code == 0, looked.err);
  CHECK(contains(looked.out, "rows/rows  64\n"));

  // A source that changed since.
  run_in(folder, "sed -i 's/a.data_out.rows()/2 * a.data_out.rows()/' mine.cpp");
  const auto old = run_with_cache(folder, "stepop eval " + only_run(folder) + " -c rows");
  CHECK(contains(old.out, "code      the run's own copy; since it was made mine.cpp changed: "));
  CHECK(contains(old.out, "rows/rows  64\n"));

  // The same as it is now, and one that was written after the run: the guide's.
  const std::string guide = read_bytes(STEPOP_SOURCE_DIR "/iterators/IN_DEPTH.md");
  const size_t begin = guide.find("stepop::Logs bias(");
  REQUIRE(begin != std::string::npos);
  folder.write("later.cpp", "#include <stepop/stepop.h>\n" +
                                guide.substr(begin, guide.find("```", begin) - begin));
  const auto changed =
      run_with_cache(folder, "stepop eval " + only_run(folder) +
                                 " -c rows -c bias --code/+ later.cpp --current-code");
  CHECK_MESSAGE(changed.exit_code == 0, changed.err);
  CHECK(contains(changed.out,
                 "code      as it is now; since the run's own copy was made mine.cpp "
                 "changed\n"));
  CHECK(contains(changed.out, "rows/rows  128\n"));
  CHECK(contains(changed.out, "bias/mean  "));
}

TEST_CASE("code_flags that the precompiled header does not fit are for the compiler all the same") {
  const ScratchFolder folder;
  write_source(folder, "static_assert(__cplusplus > 202002L && ANSWER == 42);\n");
  const auto result = run_with_cache(
      folder, "stepop list -b one.yaml --code_flags '[-std=c++23, -DANSWER=42]' >/dev/null");
  CHECK(result.exit_code == 0);
  CHECK(result.err == "compiling one.cpp\n");
}

}  // namespace code_test
}  // namespace stepop
