#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/code_run.h"
#include "tests/places.h"

namespace stepop {
namespace code_errors_test {

/// A template with one mistake after another in it, of which $MISTAKE makes one. So it is compiled
/// once for all of them.
struct Faulty {
  ScratchFolder folder;

  Faulty() {
    make_new(folder, "faulty");
    const auto is = [](const std::string& mistake) { return "mistake() == \"" + mistake + "\""; };
    std::string source = read_bytes(folder / "faulty.cpp");
    const auto put = [&](const std::string& before, const std::string& statement) {
      const size_t at = source.find(before);
      REQUIRE(at != std::string::npos);
      source.insert(at, statement);
    };
    put("namespace {",
        "std::string mistake() {\n"
        "  const char* name = std::getenv(\"MISTAKE\");\n"
        "  return name == nullptr ? \"\" : name;\n"
        "}\n"
        "int deep(volatile int* n) { int m = *n + 1; return deep(&m) + m; }\n");
    put("    stepop::Random fixed(",
        "    if (index == 40 && " + is("row") + ") throw std::out_of_range(\"no row\");\n");
    put("update_.step(loss.mean())", "static int calls = 0; if (++calls > 4 && " + is("null") +
                                         ") *static_cast<volatile int*>(nullptr) = calls;\n"
                                         "int n = 0; if (" +
                                         is("deep") + " && deep(&n) == 3) return;\nif (" +
                                         is("abort") + ") std::abort();\nif (" + is("exit") +
                                         ") std::exit(0);\nif (calls > 4 && " + is("loop") +
                                         ") {\nstd::fclose(std::fopen(\"inside\", \"w\"));\n"
                                         "for (volatile int i = 0;;) i = 1;\n}\n");
    const std::string layer = "torch::nn::Linear(2, width)";
    source.replace(source.find(layer), layer.size(),
                   "torch::nn::Linear(" + is("shape") + " ? 3 : 2, width)");
    put("layers_ = register_module(", "if (" + is("constructor") + ") std::stoi(\"many\");\n    ");
    // Calls of a library's function that a compiler inlines, and may make one.
    put("const auto prediction = model_->forward(",
        "static const std::vector<int> weights{1, 2};\n    if (" + is("library") +
            " && weights.at(batch.size()) + weights.at(batch.size() + 1) == 0) return {};\n    ");
    folder.write("faulty.cpp", source);
  }

  /// `faulty.cpp:63: `, of the line with `text`.
  std::string place_of(const std::string& text) const {
    const std::string source = read_bytes(folder / "faulty.cpp");
    const auto end = source.begin() + static_cast<std::ptrdiff_t>(source.find(text));
    return "faulty.cpp:" + std::to_string(1 + std::count(source.begin(), end, '\n')) + ": ";
  }
};

const Faulty& faulty() {
  static const Faulty made;
  return made;
}

CommandResult run_with(const std::string& mistake, const std::string& more = "") {
  // AddressSanitizer would take the signal for itself.
  return run_with_cache(faulty().folder,
                        "export ASAN_OPTIONS=\"$ASAN_OPTIONS:handle_segv=0\"\nexport MISTAKE=" +
                            mistake + "\nstepop -n x -b faulty.yaml -t" + kShort + more);
}

TEST_CASE("an error in user code names the file and line, below what was called") {
  const std::string forward = faulty().place_of("layers_->forward(x)");
  const std::string step_op = faulty().place_of("model_->forward(");
  const auto failed = run_with("shape");
  CHECK(failed.exit_code == 1);
  // LibTorch 2.15 has the operation's name before it.
  CHECK(contains(failed.err, "train/step_op: "));
  CHECK(contains(failed.err, "mat1 and mat2 shapes cannot be multiplied"));
  CHECK(contains(failed.err, "\nin your own code:\n  " + forward + "in FaultyNetwork::forward\n  " +
                                 step_op + "in Faulty::step_op"));
  // Also in another folder, where it comes from the cache.
  const auto copied = run_with_cache(faulty().folder,
                                     "export MISTAKE=shape; mkdir elsewhere && cp faulty.* "
                                     "elsewhere && stepop -b elsewhere/faulty.yaml -t" +
                                         kShort);
  CHECK_FALSE(contains(copied.err, "compiling"));
  CHECK(contains(copied.err, "\n  elsewhere/" + step_op));
}

TEST_CASE("an error in a network's constructor, and in what a compiler inlined, has its place") {
  const auto made = run_with("constructor");
  CHECK(made.exit_code == 1);
  CHECK(contains(made.err, "stepop: faulty.yaml:"));
  CHECK(contains(made.err, ": model: FaultyNetwork: stoi\nin your own code:\n  " +
                               faulty().place_of("std::stoi(") + "in FaultyNetwork"));
  const auto inlined = run_with("library");
  CHECK(contains(inlined.err, "vector::_M_range_check"));
  CHECK(contains(inlined.err, "\nin your own code:\n  " + faulty().place_of("weights.at(") +
                                  "in Faulty::step_op"));
}

TEST_CASE("an error in user code that a data worker runs has its place") {
  const auto failed = run_with("row", " --n_data_processes 2");
  CHECK(contains(failed.err, "no row"));
  CHECK(contains(failed.err, "\nin your own code:\n  " + faulty().place_of("no row")));
}

TEST_CASE("a crash in user code says where and how to resume, and keeps the signal's status") {
  // After the first steps.
  const auto null = run_with("null");
  CHECK(null.exit_code == 128 + 11);
  CHECK(contains(null.err, "stepop: SIGSEGV"));
  CHECK(contains(null.err, " in train_op on the split train, after step 4, with the examples "));
  CHECK(contains(null.err, "in your own code, the innermost function first:\n  /"));
  const size_t places = null.err.find("innermost function first:\n");
  for (const auto& line : lines_of(null.err.substr(std::min(places, null.err.size())))) {
    if (!line.starts_with("  /")) continue;
    CHECK(contains(line, "/faulty.cpp:"));
    CHECK(line.find_first_of("(<") == std::string::npos);
    CHECK_FALSE(contains(line, "_Z"));
  }
  // The standard library lies between an op and who calls it.
  CHECK_FALSE(contains(null.err, "/include/c++/"));
  CHECK(contains(null.err, "resume with:  "));

  const auto recursion = run_with("deep");
  CHECK(recursion.exit_code == 128 + 11);
  CHECK(contains(recursion.err, "stepop: SIGSEGV"));
  CHECK(contains(recursion.err, "deep"));

  const auto abort = run_with("abort");
  CHECK(abort.exit_code == 128 + 6);
  CHECK(contains(abort.err, "stepop: SIGABRT"));
}

TEST_CASE("a Ctrl-C says what is being finished, and a second one where that was") {
  REQUIRE(run_with("none").exit_code == 0);  // compiles it
  const std::string until = "for ((i = 0; i < 6000; ++i)); do ";
  const auto stopped = run_with_cache(
      faulty().folder, "export MISTAKE=loop; rm -f inside err\n'" STEPOP_BINARY_DIR
                       "/stepop' -n x -b faulty.yaml -t" +
                           kShort + " >/dev/null 2>err &\n" + until +
                           "[ -e inside ] && break; sleep 0.01; done; sleep 1\n"
                           "kill -INT $!; " +
                           until +
                           "grep -qs once err && break; sleep 0.01; done\n"
                           "kill -INT $!; wait $!; code=$?; cat err >&2; exit $code");
  CHECK(stopped.exit_code == 128 + 2);
  CHECK(contains(stopped.err, "SIGINT: finishing step 5 (in train_op for "));
  CHECK(contains(stopped.err, " s); once more ends at once\n"));
  CHECK(contains(stopped.err,
                 "SIGINT again: ended in train_op on the split train, after step 4, with the "
                 "examples "));
  CHECK(contains(stopped.err, "in your own code, the innermost function first:\n"));
  CHECK(contains(stopped.err, "faulty.cpp:"));
}

TEST_CASE("user code that calls exit() ends no training as a success") {
  const auto exited = run_with("exit");
  CHECK(exited.exit_code == 1);
  CHECK(contains(exited.err,
                 "stepop: exit(0) was called in train_op on the split train, after step 0, with "
                 "the examples "));
  CHECK(contains(exited.err, "throw an exception to end the training with an error"));
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
  CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') < 15);
}

TEST_CASE("a name in quotes is refused by the compiler in a sentence") {
  const ScratchFolder folder;
  write_source(folder,
               "stepop::Logs told(const stepop::CallbackArguments&);\n"
               "STEPOP_REGISTER_CALLBACK(\"told\", told, {\"What is told.\", {}});\n");
  const auto failed = run_with_cache(folder, "stepop -n x -b one.yaml -t");
  CHECK(failed.exit_code == 1);
  CHECK(
      contains(failed.err, "a component's name stands in its STEPOP_REGISTER_... without quotes"));
  CHECK(contains(failed.err, "one.cpp:3:"));
  CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') < 20);
}

TEST_CASE("members in another order than their struct's are answered with that order") {
  const ScratchFolder folder;
  write_source(folder,
               "stepop::StepOps ops() {\n"
               "  return {.log_op = [] { return stepop::Logs{}; }, .train_op = [] {}};\n}\n");
  // The quotes of the compiler's message depend on the language of the shell.
  for (const std::string language : {"C", "C.UTF-8"}) {
    CAPTURE(language);
    const auto failed =
        run_with_cache(folder, "LC_ALL=" + language + " stepop -n x -b one.yaml -t");
    CHECK(failed.exit_code == 1);
    CHECK(
        contains(failed.err,
                 "stepop::StepOps: .train_op, .log_op, .eval_op, .train_ops, .log_ops, .eval_ops"));
  }
}

TEST_CASE("a compile error is the compiler's own message, and how to take another compiler") {
  const ScratchFolder folder;
  write_source(folder, "");
  folder.write("one.cpp", "\nint answer() { return forty_two; }\n");
  const auto result = run_with_cache(folder, "stepop -b one.yaml -t");
  CHECK(result.exit_code == 1);
  CHECK(result.out == "");
  CHECK(result.err.starts_with("compiling one.cpp\none.cpp:"));
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
  const std::string process =
      run_in(folder, "cat logs/*_first/train/process.json").out;  // for whoever looks later
  CHECK(contains(process, "failed"));
  CHECK(contains(process, "the loss has the shape [32]"));
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
  write_source(folder, "");
  folder.write("one.cpp", "static int unused() { return 1; }\n");
  CHECK(contains(run_with_cache(folder, "stepop list -b one.yaml").err, "-Wunused-function"));
  CHECK(run_with_cache(folder, "stepop list -b one.yaml").err == "");
}

TEST_CASE("code that fails while it is loaded is told with its name") {
  const ScratchFolder folder;
  // A constructor that throws, one that crashes, and behind them a name that is taken.
  write_source(folder,
               "static const int value = [] {\n"
               "  if (std::getenv(\"THROWS\")) throw std::runtime_error(\"no luck\");\n"
               "  if (std::getenv(\"CRASHES\")) std::abort();\n  return 1;\n}();\n"
               "stepop::Logs say(const stepop::CallbackArguments&) { return {}; }\n"
               "STEPOP_REGISTER_CALLBACK(accuracy, say, {\"Mine.\"});\n");
  const auto thrown = run_with_cache(folder, "THROWS=1 stepop -b one.yaml -t");
  CHECK(thrown.exit_code == 1);
  CHECK(contains(thrown.err,
                 "stepop: one.cpp threw while it was loaded, in a constructor of a global or "
                 "static object: no luck\n"));
  const auto crashed = run_with_cache(folder, "CRASHES=1 stepop -b one.yaml -t");
  CHECK(crashed.exit_code == 134);
  CHECK(contains(crashed.err,
                 "stepop: one.cpp crashed while it was loaded, in a constructor of a global or "
                 "static object\n"));
  const auto taken = run_with_cache(folder, "stepop -b one.yaml -t");
  CHECK(taken.exit_code == 1);
  CHECK(contains(taken.err, "stepop: the callback \"accuracy\" is registered twice: at "));
  CHECK(contains(taken.err, " and at one.cpp:8; rename one of them\n"));

  folder.write("one.cpp", "int missing(int);\nstatic const int value = missing(1);\n");
  const auto undefined = run_with_cache(folder, "stepop -b one.yaml -t");
  CHECK(undefined.exit_code == 1);
  CHECK(contains(undefined.err,
                 "stepop: one.cpp: cannot be loaded: undefined symbol: missing(int)\n"));
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
  CHECK(contains(
      refused("cp $(ldd '" STEPOP_BINARY_DIR "/libstepop.so' | awk '/libz.so/ {print $3}') "
              "libz.so; stepop -b one.yaml -t --code libz.so"),
      "stepop: libz.so: a library that does not include <stepop/stepop.h> has no "
      "components for stepop\n"));
  CHECK(refused("export STEPOP_CXX=/nowhere/g++; stepop -b one.yaml -t")
            .starts_with("stepop: no compiler: cannot run /nowhere/g++: No such file or directory. "
                         "Install one (Debian: apt-get install g++), or name another one in "
                         "STEPOP_CXX\n"));
  folder.write("full", "a file");
  CHECK(refused("export STEPOP_CACHE=full/cache; stepop -b one.yaml -t")
            .starts_with("stepop: cannot make the folder " + folder.path("full/cache") +
                         ": Not a directory: the folder for compiled code; STEPOP_CACHE names "
                         "another one"));
}

}  // namespace code_errors_test
}  // namespace stepop
