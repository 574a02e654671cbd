#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/code_run.h"

namespace stepop {
namespace code_errors_test {

TEST_CASE("an error in user code names the file and line, below what was called") {
  const ScratchFolder folder;
  make_new(folder, "denoiser");
  run_in(folder,
         "sed -i 's/torch::nn::Linear(2, width)/torch::nn::Linear(3, width)/' denoiser.cpp");
  const std::string source = read_bytes(folder / "denoiser.cpp");
  const auto line_of = [&](const std::string& text) {
    return "denoiser.cpp:" +
           std::to_string(
               1 + std::count(source.begin(),
                              source.begin() + static_cast<std::ptrdiff_t>(source.find(text)),
                              '\n')) +
           ": ";
  };
  const auto failed = run_with_cache(folder, "stepop -n first -b denoiser.yaml -t" + kShort);
  CHECK(failed.exit_code == 1);
  CHECK(contains(failed.err, "train/step_op: mat1 and mat2 shapes cannot be multiplied"));
  CHECK(contains(failed.err, "\nin your own code:\n  " + line_of("layers_->forward(x)") +
                                 "in DenoiserNetwork::forward\n  " + line_of("model_->forward(") +
                                 "in Denoiser::step_op"));
  SUBCASE("also in a run that is compiled from the cache, in another folder") {
    const auto moved = run_with_cache(folder,
                                      "mkdir elsewhere && mv denoiser.* elsewhere && "
                                      "stepop -b elsewhere/denoiser.yaml -t" +
                                          kShort);
    CHECK(contains(moved.err, "\n  elsewhere/" + line_of("model_->forward(")));
  }
}

TEST_CASE("an error in user code that a data worker runs has its place") {
  const ScratchFolder folder;
  make_new(folder, "mine");
  run_in(folder,
         "sed -i 's/^    stepop::Random fixed(/    if (index == 40) throw std::out_of_range(\"no "
         "row\");\\n&/' mine.cpp");
  const auto failed =
      run_with_cache(folder, "stepop -n x -b mine.yaml -t --n_data_processes 2" + kShort);
  CHECK(contains(failed.err, "no row"));
  CHECK(contains(failed.err, "\nin your own code:\n  mine.cpp:"));
}

TEST_CASE("a crash in user code says where and how to resume, and keeps the signal's status") {
  const ScratchFolder folder;
  make_new(folder, "mine");
  const auto crash_with = [&](const std::string& statement) {
    run_in(folder, "sed -i 's/update_.step(loss.mean());.*/" + statement +
                       " update_.step(loss.mean()); },/' mine.cpp");
    // AddressSanitizer would take the signal for itself.
    return run_with_cache(folder,
                          "export ASAN_OPTIONS=\"$ASAN_OPTIONS:handle_segv=0\"\n"
                          "stepop -n x -b mine.yaml -t" +
                              kShort);
  };
  SUBCASE("a null pointer, after the first steps") {
    const auto crashed = crash_with(
        "static int calls = 0; if (++calls > 4) { *static_cast<volatile int*>(nullptr) = calls; }");
    CHECK(crashed.exit_code == 128 + 11);
    CHECK(contains(crashed.err, "stepop: SIGSEGV"));
    CHECK(
        contains(crashed.err, " in train_op on the split train, after step 4, with the examples "));
    CHECK(contains(crashed.err, "mine.cpp:"));
    CHECK(contains(crashed.err, "resume with:  "));
  }
  SUBCASE("recursion without end") {
    run_in(folder,
           "sed -i '0,/^namespace {/s//namespace {\\nint deep(volatile int* n) { int m = *n + 1; "
           "return deep(\\&m) + m; }/' mine.cpp");
    const auto crashed = crash_with("int n = 0; if (deep(\\&n) == 3) return;");
    CHECK(crashed.exit_code == 128 + 11);
    CHECK(contains(crashed.err, "stepop: SIGSEGV"));
    CHECK(contains(crashed.err, "deep"));
  }
  SUBCASE("an abort") {
    const auto crashed = crash_with("std::abort();");
    CHECK(crashed.exit_code == 128 + 6);
    CHECK(contains(crashed.err, "stepop: SIGABRT"));
  }
}

TEST_CASE("an op that returns the wrong thing is refused by the compiler in a sentence") {
  const ScratchFolder folder;
  write_source(folder,
               "stepop::StepOps ops(at::Tensor loss) {\n"
               "  return {.train_op = [=] { return loss; }};\n}\n");
  const auto failed = run_with_cache(folder, "stepop -n x -b one.yaml -t");
  CHECK(failed.exit_code == 1);
  CHECK(contains(failed.err, "a train_op returns nothing, or stepop::Scalars to be logged"));
  CHECK(contains(failed.err, "one.cpp:3:"));
  CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') < 10);
}

TEST_CASE("a compile error is the compiler's own message, and nothing else") {
  const ScratchFolder folder;
  write_source(folder, "int answer() { return forty_two; }\n");
  const auto result = run_with_cache(folder, "stepop -b one.yaml -t");
  CHECK(result.exit_code == 1);
  CHECK(result.out == "");
  CHECK(contains(result.err, "compiling one.cpp\none.cpp: In function"));
  CHECK(contains(result.err, "one.cpp:2:23: error: "));
  CHECK_FALSE(contains(result.err, "stepop:"));
  CHECK(only_run(folder).empty());
}

TEST_CASE("what track() cannot take is refused by the compiler in a sentence") {
  const ScratchFolder folder;
  write_source(
      folder,
      "inline void f(const stepop::Context& context, int& n) { context.track(\"n\", n); }\n");
  const auto failed = run_with_cache(folder, "stepop -n x -b one.yaml -t");
  CHECK(failed.exit_code == 1);
  CHECK(contains(failed.err, "track() takes members of the types int64_t, double, at::Tensor"));
}

TEST_CASE("an op that captures by reference is found before anything is compiled") {
  const ScratchFolder folder;
  make_new(folder, "mine");
  run_in(folder, "sed -i 's/train_op = \\[=, this\\]/train_op = [\\&]/' mine.cpp");
  const auto result = run_with_cache(folder, "stepop -n x -b mine.yaml -t");
  CHECK(result.exit_code == 1);
  const std::string source = read_bytes(folder / "mine.cpp");
  const auto line =
      1 + std::count(source.begin(), source.begin() + source.find("train_op = [&]"), '\n');
  CHECK(
      result.err ==
      "stepop: mine.cpp:" + std::to_string(line) +
          ": train_op captures by reference ([&]): step_op has returned when it runs, and what it "
          "refers to is gone: capture by value, [=, this]\n");
}

TEST_CASE("after an error in user code, what to type takes the code that was fixed") {
  const ScratchFolder folder;
  make_new(folder, "denoiser");
  run_in(folder, "sed -i 's/update_.step(loss.mean())/update_.step(loss)/' denoiser.cpp");
  const auto failed = run_with_cache(folder, "stepop -n first -b denoiser.yaml -t" + kShort);
  CHECK(failed.exit_code == 1);
  CHECK(contains(failed.err, "the loss has the shape [32]"));
  const size_t at =
      failed.err.find("nothing was saved yet; once the cause is fixed, start again with:  ");
  REQUIRE(at != std::string::npos);
  const size_t begin = failed.err.find(":  ", at) + 3;
  const std::string line = failed.err.substr(begin, failed.err.find('\n', begin) - begin);
  CHECK(contains(failed.err, "\nif you fixed it in your own code, add --current-code: "));
  run_in(folder, "sed -i 's/update_.step(loss)/update_.step(loss.mean())/' denoiser.cpp");
  const auto fixed = run_with_cache(folder, line + " --current-code");
  CHECK_MESSAGE(fixed.exit_code == 0, fixed.err);
}

TEST_CASE("a warning is told, once") {
  const ScratchFolder folder;
  write_source(folder, "static int unused() { return 1; }\n");
  CHECK(contains(run_with_cache(folder, "stepop list -b one.yaml").err, "-Wunused-function"));
  CHECK(run_with_cache(folder, "stepop list -b one.yaml").err == "");
}

TEST_CASE("code that fails while it is loaded is told with its name") {
  const ScratchFolder folder;
  SUBCASE("a constructor throws") {
    write_source(folder,
                 "static const int value = [] {\n"
                 "  if (true) throw std::runtime_error(\"no luck\");\n  return 1;\n}();\n");
    const auto result = run_with_cache(folder, "stepop -b one.yaml -t");
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err,
                   "stepop: one.cpp threw while it was loaded, in a constructor of a global or "
                   "static object: no luck\n"));
  }
  SUBCASE("it crashes") {
    write_source(folder, "static const int value = [] {\n  std::abort();\n  return 1;\n}();\n");
    const auto result = run_with_cache(folder, "stepop -b one.yaml -t");
    CHECK(result.exit_code == 134);
    CHECK(contains(result.err,
                   "stepop: one.cpp crashed while it was loaded, in a constructor of a global or "
                   "static object\n"));
  }
  SUBCASE("a function that it declares is not there") {
    write_source(folder, "int missing(int);\nstatic const int value = missing(1);\n");
    const auto result = run_with_cache(folder, "stepop -b one.yaml -t");
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err,
                   "stepop: one.cpp: cannot be loaded: undefined symbol: missing(int)\n"));
  }
  SUBCASE("a name is taken") {
    write_source(folder,
                 "stepop::Logs say(const stepop::CallbackArguments&) { return {}; }\n"
                 "STEPOP_REGISTER_CALLBACK(accuracy, say, {\"Mine.\"});\n");
    const auto result = run_with_cache(folder, "stepop -b one.yaml -t");
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, "stepop: the callback \"accuracy\" is registered twice: at "));
    CHECK(contains(result.err, " and at one.cpp:3; rename one of them\n"));
  }
}

TEST_CASE("code that is not there, or cannot be compiled here, is told") {
  const ScratchFolder folder;
  write_source(folder, "");
  const auto refused = [&](const std::string& line) {
    const auto result = run_with_cache(folder, line);
    CHECK(result.exit_code != 0);
    return result.err;
  };
  CHECK(refused("stepop -b one.yaml -t --code two.cpp") ==
        "stepop: command line: code: " + folder.path("two.cpp") + ": no such file\n");
  CHECK(refused(
            "mv one.cpp old.cpp; stepop -b one.yaml -t; code=$?; mv old.cpp one.cpp; exit $code") ==
        "stepop: one.yaml:1: code: " + folder.path("one.cpp") + ": no such file\n");
  folder.write("notes.h", "");
  CHECK(refused("stepop -b one.yaml -t --code notes.h") ==
        "stepop: command line: code: notes.h: neither a C++ source (.cpp, .cc, .cxx) nor a shared "
        "library (.so); headers are found by the sources\n");
  folder.write("libtext.so", "no library");
  CHECK(refused("stepop -b one.yaml -t --code libtext.so") ==
        "stepop: libtext.so: not a shared library\n");
  CHECK(contains(refused("cp $(ldd '" STEPOP_BINARY_DIR "/stepop' | awk '/libz.so/ {print $3}') "
                         "libz.so; stepop -b one.yaml -t --code libz.so"),
                 "stepop: libz.so: a library that does not include <stepop/stepop.h> has no "
                 "components for stepop\n"));
  CHECK(refused("export STEPOP_CXX=/nowhere/g++; stepop -b one.yaml -t")
            .starts_with("stepop: no compiler: cannot run /nowhere/g++: No such file or directory. "
                         "stepop was built with "));
  folder.write("full", "a file");
  CHECK(refused("export STEPOP_CACHE=full/cache; stepop -b one.yaml -t")
            .starts_with("stepop: cannot make the folder " + folder.path("full/cache") +
                         ": Not a directory: the folder for compiled code; STEPOP_CACHE names "
                         "another one"));
}

}  // namespace code_errors_test
}  // namespace stepop
