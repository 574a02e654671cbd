#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/code_run.h"

namespace stepop {
namespace code_test {

namespace fs = std::filesystem;

const std::string kShort =
    " --datasets/train/size 128 --datasets/validation/size 64 --batch_size 32"
    " --num_epochs 2";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// One source, whose train split is the ready-made one, with `code` in it.
void write_source(const ScratchFolder& folder, const std::string& code) {
  folder.write("one.cpp", "#include <stepop/stepop.h>\n" + code);
  folder.write("one.yaml",
               "code: one.cpp\niterator: Classifier\nmodel: LeNet\nnum_steps: 1\nbatch_size: 4\n"
               "optimizer: {class: SGD, lr: 0.1}\n"
               "datasets: {train: {class: Synthetic, size: 8}}\nlog_ops: [train/log_op]\n");
}

TEST_CASE("a new iterator is compiled once, trains, goes on with its own copy and is evaluated") {
  const ScratchFolder folder;
  make_new(folder, "denoiser");
  const auto first = run_with_cache(folder, "stepop -n first -b denoiser.yaml -t" + kShort);
  REQUIRE_MESSAGE(first.exit_code == 0, first.err);
  CHECK(first.err == "compiling denoiser.cpp\n");
  const std::string run = only_run(folder);
  const std::string time = fs::path(run).filename().string().substr(0, 19);
  CHECK(read_bytes(folder / (run + "/code/" + time + "/denoiser.cpp")) ==
        read_bytes(folder / "denoiser.cpp"));

  SUBCASE("unchanged, it is not compiled again, wherever it lies") {
    const auto moved = run_with_cache(folder,
                                      "mkdir elsewhere && mv denoiser.* elsewhere && "
                                      "stepop -n second -b elsewhere/denoiser.yaml -t" +
                                          kShort);
    CHECK(moved.exit_code == 0);
    CHECK(moved.err == "");
  }
  SUBCASE("a resume takes the run's copy, and says what changed since") {
    run_in(folder, "sed -i 's/\"mse\", loss}/\"error\", loss}/' denoiser.cpp");
    const auto resumed = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 3");
    CHECK(resumed.exit_code == 0);
    CHECK(resumed.err == "");
    CHECK(contains(resumed.out,
                   "code      the run's own copy; since it was made denoiser.cpp "
                   "changed: --current-code takes what is there now\n"));
    CHECK(contains(resumed.out, "validation/eval_op: mse "));
    const auto current =
        run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 4 --current-code");
    CHECK(current.exit_code == 0);
    CHECK(current.err == "compiling denoiser.cpp\n");
    CHECK(contains(current.out, "validation/eval_op: error "));
    // From now on that is the run's code.
    const auto again = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 5");
    CHECK(contains(again.out, "validation/eval_op: error "));
    CHECK_FALSE(contains(again.out, "the run's own copy"));
  }
  SUBCASE("the originals may be gone, and so may the cache's folder") {
    const auto resumed =
        run_with_cache(folder, "rm -r denoiser.cpp cache\nstepop -p " + run + " -t --num_epochs 3");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(contains(resumed.out, "since it was made denoiser.cpp is gone"));
    const auto evaluated = run_with_cache(folder, "stepop -p " + run);
    CHECK(evaluated.exit_code == 0);
  }
  SUBCASE("a copy that is damaged is told, with a way out") {
    const std::string folder_of_copy = folder / (run + "/code/" + time);
    write_bytes(folder_of_copy + "/sources.json", "{");
    const auto resumed = run_with_cache(folder, "stepop -p " + run + " -t --num_epochs 3");
    CHECK(resumed.exit_code == 1);
    CHECK(contains(resumed.err, folder_of_copy + "/sources.json: damaged: "));
    CHECK(contains(resumed.err, "; remove that folder to resume with the "));
  }
  SUBCASE("its components are listed with its config") {
    const auto list = run_with_cache(folder, "stepop list -b denoiser.yaml");
    CHECK(list.exit_code == 0);
    CHECK(contains(list.out, "DenoiserNetwork Three linear layers.\n"));
    CHECK(contains(list.out, "  Denoiser       Fits a function.\n"));
    CHECK(contains(list.out, "DenoiserData   A function of two numbers, with noise.\n"));
  }
}

TEST_CASE("code that a resume adds leaves the run with its own copy of the rest") {
  const ScratchFolder folder;
  make_new(folder, "denoiser");
  REQUIRE(run_with_cache(folder, "stepop -n first -b denoiser.yaml -t" + kShort).exit_code == 0);
  const std::string run = only_run(folder);
  folder.write("more/later.cpp",
               "#include <stepop/stepop.h>\n"
               "stepop::Logs rows(const stepop::CallbackArguments&) { return {}; }\n"
               "STEPOP_REGISTER_CALLBACK(rows, rows, {\"Counts.\"});\n");
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
    return run_with_cache(folder, "stepop -n x -b mine.yaml -t" + kShort);
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
  const auto second = run_with_cache(folder, "stepop list -b one.yaml | grep -A1 ' say '");
  CHECK(second.err == "compiling one.cpp\n");
  CHECK(contains(second.out, "two"));
  folder.write("parts of it/answer.h", "inline const char* answer() { return \"one\"; }\n");
  const auto third = run_with_cache(folder, "stepop list -b one.yaml | grep -A1 ' say '");
  CHECK(third.err == "");
  CHECK(contains(third.out, "one"));
  // What nobody used for long goes with the next compile.
  const auto fourth = run_with_cache(folder,
                                     "touch -d '61 days ago' cache/*.json\n"
                                     "echo '// more' >> one.cpp\n"
                                     "ls cache/*.so | wc -l; stepop list -b one.yaml >/dev/null; "
                                     "ls cache/*.so | wc -l");
  CHECK(fourth.out == "2\n1\n");
}

TEST_CASE("two starts at once compile once") {
  const ScratchFolder folder;
  write_source(folder, "// nothing\n");
  const auto both = run_with_cache(folder,
                                   "stepop list -b one.yaml >/dev/null 2>a.txt &\n"
                                   "stepop list -b one.yaml >/dev/null 2>b.txt\n"
                                   "wait; cat a.txt b.txt | sort");
  CHECK(both.out ==
        "compiling one.cpp\nwaiting for another stepop, which compiles the same code\n");
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
  const auto damaged = run_with_cache(
      folder, "echo '[{\"library\": 3}, 7]' > cache/*.json; stepop list -b one.yaml");
  CHECK(damaged.exit_code == 0);
  CHECK(damaged.err == "compiling one.cpp\n");
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

TEST_CASE("a callback of your own runs over outputs that are there") {
  const ScratchFolder folder;
  make_new(folder, "mine");
  run_in(folder,
         "sed -i 's/^STEPOP_REGISTER_ITERATOR/stepop::Logs rows(const stepop::CallbackArguments\\& "
         "a) {\\n  return {.scalars = {{\"rows\", a.data_out.rows()}}};\\n}\\n"
         "STEPOP_REGISTER_CALLBACK(rows, rows, {\"Counts.\"});\\n&/' mine.cpp");
  REQUIRE(run_with_cache(folder, "stepop -n x -b mine.yaml -t" + kShort).exit_code == 0);
  const auto looked = run_with_cache(folder, "stepop eval " + only_run(folder) + " -c rows");
  CHECK_MESSAGE(looked.exit_code == 0, looked.err);
  CHECK(contains(looked.out, "rows/rows  64\n"));

  // One that was written after the run: the guide's.
  const std::string guide = read_bytes(STEPOP_SOURCE_DIR "/iterators/README.md");
  const size_t begin = guide.find("stepop::Logs bias(");
  REQUIRE(begin != std::string::npos);
  folder.write("later.cpp", "#include <stepop/stepop.h>\n" +
                                guide.substr(begin, guide.find("```", begin) - begin));
  const auto later =
      run_with_cache(folder, "stepop eval " + only_run(folder) + " -c bias --code/+ later.cpp");
  CHECK_MESSAGE(later.exit_code == 0, later.err);
  CHECK(contains(later.out, "bias/mean  "));

  // A callback that changed since.
  run_in(folder, "sed -i 's/a.data_out.rows()/2 * a.data_out.rows()/' mine.cpp");
  const auto old = run_with_cache(folder, "stepop eval " + only_run(folder) + " -c rows");
  CHECK(contains(old.out, "code      the run's own copy; since it was made mine.cpp changed: "));
  CHECK(contains(old.out, "rows/rows  64\n"));
  const auto changed =
      run_with_cache(folder, "stepop eval " + only_run(folder) + " -c rows --current-code");
  CHECK(contains(changed.out,
                 "code      as it is now; since the run's own copy was made mine.cpp "
                 "changed\n"));
  CHECK(contains(changed.out, "rows/rows  128\n"));
}

}  // namespace code_test
}  // namespace stepop
