// `stepop eval PATH`, with the real binary.

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "eval_out/write/eval_writer.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace eval_test {

namespace fs = std::filesystem;

/// One training of an epoch, of which tests take copies.
class Evaluated {
 public:
  explicit Evaluated(const std::string& more = "", const std::string& before = "") {
    run_well(folder_, before + "stepop -n a -b CONFIG -t --num_epochs 1 " + more);
    const fs::path evaluations = *fs::directory_iterator(run() + "/eval");
    evaluation_ = (evaluations / "23").string();
  }

  const ScratchFolder& folder() const { return folder_; }
  std::string run() const { return folder_.path(only_run(folder_)); }
  const std::string& evaluation() const { return evaluation_; }
  std::string read(const std::string& name) const { return read_bytes(evaluation_ + "/" + name); }
  nlohmann::json scalars() const { return nlohmann::json::parse(read("scalars.json")); }

  CommandResult eval(const std::string& words, const std::string& path = "logs/*") const {
    return run_in(folder_, "stepop eval " + path + " " + words);
  }

 private:
  ScratchFolder folder_;
  std::string evaluation_;
};

std::string without_first_line(const std::string& text) { return text.substr(text.find('\n') + 1); }

/// Every file but the outputs, whose reading may touch nothing either.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& name : files_below(folder)) all[name] = read_bytes(folder + "/" + name);
  return all;
}

TEST_CASE("a callback gives afterwards what it gives in the training") {
  const std::string callbacks =
      "--eval_hook/eval_callbacks "
      "'{confusion_matrix: confusion_matrix, report: classification_report, h: histogram}' "
      "--eval_pipeline/callback_kwargs '{confusion_matrix: {normalize: true}, h: {bins: 7}}'";
  const Evaluated trained(callbacks);
  const auto before = contents(trained.run());
  CHECK(before.contains("train/metrics.jsonl"));

  // Without -c the callbacks of the stored config, with their parameters.
  const CommandResult again = trained.eval("");
  CHECK(again.err == "");
  CHECK(again.exit_code == 0);
  CHECK(again.out.find(": 355 rows of validation at step 23\n") != std::string::npos);
  CHECK(again.out.find("validation/eval_op/accuracy/accuracy") != std::string::npos);
  CHECK((contents(trained.run()) == before));

  // The same code on a run that was trained without them.
  const Evaluated plain;
  CHECK(plain
            .eval("-c confusion_matrix -c report:classification_report -c h:histogram "
                  "--confusion_matrix/normalize true --h/bins 7")
            .exit_code == 0);
  for (const char* name : {"confusion_matrix/matrix.csv", "confusion_matrix/matrix.png",
                           "report/report.txt", "h/counts.json", "h/histogram.png"}) {
    CAPTURE(name);
    CHECK(plain.read(name) != "");
    CHECK(plain.read(name) == trained.read(name));
  }
  CHECK(plain.scalars() == trained.scalars());
  CHECK(read_bytes(plain.run() + "/train/metrics.jsonl").find("confusion") == std::string::npos);
}

/// For the tests that look at one run and add to it.
const Evaluated& digits() {
  static const Evaluated run;
  return run;
}

TEST_CASE("a run, an evaluation and a file are all paths to the outputs") {
  const std::string wanted = without_first_line(digits().eval("-c accuracy").out);
  CHECK(wanted.starts_with("validation/eval_op/accuracy/accuracy  0."));
  for (const std::string& path :
       {digits().run(), digits().evaluation(), digits().evaluation() + "/outputs.h5"}) {
    CHECK(without_first_line(digits().eval("-c accuracy", path).out) == wanted);
  }
}

TEST_CASE("-b lays a config over the one that is stored: callbacks, parameters, scripts, code") {
  digits().folder().write("more/seen.py", "print('{\"seen\": 3}')\n");
  digits().folder().write("more/more.yaml",
                          "eval_hook:\n  eval_callbacks:\n    accuracy: null\n"
                          "    of_mine: ./seen.py\n    h: {class: histogram, bins: 5}\n");
  const CommandResult result = digits().eval("-b more/more.yaml");
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("validation/eval_op/of_mine/seen") != std::string::npos);
  CHECK(result.out.find("accuracy") == std::string::npos);
  CHECK(nlohmann::json::parse(digits().read("h/counts.json"))["counts"].size() == 5);
}

TEST_CASE("a Python script is a callback") {
  digits().folder().write("my_report.py",
                          "import sys, h5py, json\n"
                          "loss = h5py.File(sys.argv[1])['labels/loss'][()]\n"
                          "print(json.dumps({'above': int((loss > float(sys.argv[4])).sum())}))\n");
  const CommandResult result = digits().eval("-c ./my_report.py --my_report/threshold -1");
  CHECK(result.err == "");
  CHECK(without_first_line(result.out) == "validation/eval_op/my_report/above  355\n");
  CHECK(digits().scalars()["validation/eval_op/my_report/above"] == 355);
}

TEST_CASE("a callback that fails stops no other, harms nothing, and the exit status tells") {
  const std::string outputs = digits().read("outputs.h5");
  const CommandResult result =
      digits().eval("-c first:accuracy -c accuracy -c regression --first/target nowhere");
  CHECK(result.exit_code == 3);
  CHECK(without_first_line(result.out).starts_with("validation/eval_op/accuracy/accuracy  0."));
  CHECK(result.err.find("stepop: the callback first failed: no true classes: neither the dataset's "
                        "labels nor ") == 0);
  CHECK(result.err.find("stepop: the callback regression failed: no \"prediction\" in ") !=
        std::string::npos);
  CHECK(digits().read("outputs.h5") == outputs);
}

TEST_CASE("a dataset that moved is told to what needs it, and --datasets names its new place") {
  const Evaluated moved("--datasets/validation/images images.gz",
                        "cp '" STEPOP_SOURCE_DIR
                        "/configs/data/digits-test-images.idx.gz' images.gz; ");
  CHECK(moved.eval("-c examples --examples/count 4").exit_code == 0);
  const std::string random = moved.read("examples/random.png");
  fs::rename(moved.folder().path("images.gz"), moved.folder().path("moved.gz"));

  const CommandResult lost = moved.eval("-c examples -c top_k");
  CHECK(lost.exit_code == 3);
  CHECK(lost.err.find("stepop: the callback examples failed: no \"image\" in ") == 0);
  CHECK(lost.err.find(", nor in the dataset (the dataset cannot be built: ") != std::string::npos);
  CHECK(lost.err.find("images.gz") != std::string::npos);
  CHECK(lost.out.find("/top_k/top_5") != std::string::npos);  // has all it needs in the file

  const CommandResult found =
      moved.eval("-c examples --examples/count 4 --datasets/validation/images moved.gz");
  CHECK(found.err == "");
  CHECK(found.exit_code == 0);
  CHECK(moved.read("examples/random.png") == random);
}

TEST_CASE(
    "the rows of an evaluation that was killed are looked at, and it is not made to look whole") {
  const ScratchFolder folder;
  {
    EvalWriter writer(folder.path("outputs.h5"), 4);
    writer.write({.outputs = {{"said", at::tensor({0, 1})}, {"class", at::tensor({0, 0})}}},
                 std::vector<int64_t>{0, 1});
  }
  const CommandResult result = run_in(folder, "stepop eval . -c accuracy --accuracy/logits said");
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "outputs.h5.part: 2 rows of validation, of an unfinished evaluation\n"
        "validation/eval_op/accuracy/accuracy  0.5\n");
  CHECK_FALSE(fs::exists(folder.path("scalars.json")));
}

TEST_CASE("code that only the file names is not compiled, as the file may be from anywhere") {
  const ScratchFolder folder;
  folder.write("evil.cpp",
               "#include <fstream>\nstatic const bool kRan = [] { std::ofstream(\"ran\"); return "
               "true; }();\n");
  const auto write = [&](const std::string& path) {
    fs::create_directories(fs::path(path).parent_path());
    EvalWriter writer(path, 2, {{"config", "code: [" + folder.path("evil.cpp") + "]\n"}});
    writer.write({.outputs = {{"said", at::tensor({0, 1})}, {"class", at::tensor({0, 0})}}},
                 std::vector<int64_t>{0, 1});
    writer.finish();
  };
  const std::string words = " -c accuracy --accuracy/logits said";
  write(folder.path("outputs.h5"));
  const CommandResult lone = run_in(folder, "stepop eval outputs.h5" + words);
  CHECK(lone.exit_code == 0);
  CHECK(lone.out.find("validation/eval_op/accuracy/accuracy  0.5\n") != std::string::npos);
  CHECK(lone.err == "stepop: outputs.h5 is not in the folder of a run; the code that it names ([" +
                        folder.path("evil.cpp") +
                        "]) is not compiled, as the file may be from anywhere: give the code with "
                        "--code '[my_code.cpp]'\n");
  // In a run, the run's own config says which code is loaded.
  folder.write("run/configs/train_2026-11-21T10-00-00.yaml", "batch_size: 1\n");
  write(folder.path("run/eval/2026-11-21T10-00-00_run/3/outputs.h5"));
  CHECK(run_in(folder, "stepop eval run" + words).exit_code == 0);
  CHECK_FALSE(fs::exists(folder.path("ran")));
}

TEST_CASE(
    "a script runs in a training as well, from wherever its config is, and goes with the run") {
  const ScratchFolder folder;
  folder.write("configs/report.py", "print('{\"one\": 1}')");
  folder.write("configs/with_report.yaml", "eval_hook: {eval_callbacks: {report: ./report.py}}");
  run_well(folder, "stepop -n a -b CONFIG configs/with_report.yaml -t --num_epochs 1");
  const std::string run = folder.path(only_run(folder));
  CHECK(read_bytes(run + "/train/metrics.jsonl").find("\"validation/eval_op/report/one\":1.0") !=
        std::string::npos);
  CHECK(run_well(folder, "cd /; stepop eval " + run).out.find("/report/one ") != std::string::npos);
  CHECK(run_well(folder, "stepop config -b configs/with_report.yaml")
            .out.find("report: " + folder.path("configs/report.py")) != std::string::npos);
}

TEST_CASE("a signal ends the command, and the script that it runs") {
  digits().folder().write("slow.py",
                          "import os, time\n"
                          "open('pid.tmp', 'w').write(str(os.getpid()))\n"
                          "os.rename('pid.tmp', 'pid')\n"
                          "time.sleep(600)\n");
  const CommandResult result =
      run_in(digits().folder(), "'" STEPOP_BINARY_DIR
                                "/stepop' eval logs/* -c ./slow.py & pid=$!\n"
                                "for i in $(seq 1200); do [ -e pid ] && break; sleep 0.05; done\n"
                                "kill -TERM $pid; wait $pid; code=$?\n"
                                "kill -0 $(cat pid) 2>/dev/null && echo alive; exit $code");
  CHECK(result.exit_code == 143);
  CHECK(result.out.find("alive") == std::string::npos);
}

TEST_CASE("mistakes are found before any callback runs") {
  const auto refused = [](const std::string& words, const std::string& message) {
    const CommandResult result = digits().eval(words);
    CHECK(result.out == "");
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(message) != std::string::npos);
    if (result.err.find(message) == std::string::npos) MESSAGE(result.err);
  };
  refused("-c confusion_matrx",
          "stepop: command line: eval_hook/eval_callbacks/confusion_matrx: unknown callback "
          "\"confusion_matrx\": did you mean \"confusion_matrix\"? Known are: confusion_matrix, ");
  refused("-c accuracy -c accuracy",
          "-c accuracy: there is a callback \"accuracy\" already; another name makes it a second "
          "one: -c my_name:accuracy");
  refused("-c confusion_matrix --confusion_matrix/normalise true",
          "stepop: command line: unknown key "
          "\"eval_pipeline/callback_kwargs/confusion_matrix/normalise\": did you mean "
          "\"eval_pipeline/callback_kwargs/confusion_matrix/normalize\"?");
  refused(
      "-c confusion_matrix --confusion_matrx/normalize true",
      "--confusion_matrx/normalize: neither a callback of this evaluation (confusion_matrix) nor "
      "a key of the stored config has that name; did you mean --confusion_matrix/normalize?");
  refused("-c ./none.py", "none.py: no such script");
  refused("-c a:", "-c a:: expected a callback, a name and a callback such as");
  refused("-c", "-c: no value given: ");
  refused("-t -c accuracy", "stepop eval does not take -t\n");
  refused("other.h5", "stray word \"other.h5\"");
  CHECK(digits().eval("", "none").err == "stepop: none: no such file or folder\n");
  CHECK(run_in(digits().folder(), "stepop eval -c accuracy")
            .err.starts_with("stepop: stepop eval: nothing given\nstepop eval PATH "));
}

}  // namespace eval_test
}  // namespace stepop
