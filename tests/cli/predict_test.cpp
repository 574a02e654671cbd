// `stepop predict`, and evaluations with a name by -n, with the real binary.
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace predict_test {

namespace fs = std::filesystem;

constexpr const char* kPicture = STEPOP_SOURCE_DIR "/tests/data/images/grey-8.png";

/// A short training of the digits; `photos/` has two images without labels, one in a folder.
struct Trained {
  Trained() {
    run_well(folder, "stepop -n a -b CONFIG -t --num_steps 4");
    run = only_run(folder);
    fs::create_directories(folder.path("photos/more"));
    for (const char* name : {"photos/b.png", "photos/more/a.png"}) {
      fs::copy(kPicture, folder.path(name));
    }
  }

  FoundEvaluation newest() const { return find_evaluations(folder.path(run)).back(); }

  ScratchFolder folder;
  std::string run;
};

TEST_CASE("rows without labels are predicted from a file that names them") {
  const Trained trained;
  trained.folder.write(
      "new-photos.yaml",
      "datasets:\n  predict: {class: ImageFolder, path: photos, classes: [], size: "
      "[8, 8], channels: 1}\n");
  const auto made =
      run_well(trained.folder, "stepop predict " + trained.run + " -b new-photos.yaml -c latest");
  CHECK(made.out.find("/4/new-photos/outputs.h5\n") != std::string::npos);
  const FoundEvaluation found = trained.newest();
  CHECK(found.name == "new-photos");
  CHECK(found.step == 4);
  const EvalFile file(found.outputs);
  CHECK(file.complete());
  CHECK((file.keys() == std::vector<std::string>{"outputs/path", "outputs/prediction"}));
  CHECK(file.read("outputs/prediction").sizes() == at::IntArrayRef{2, 10});
  CHECK((file.read_texts("outputs/path", 0, 2) == std::vector<std::string>{"b.png", "more/a.png"}));

  // What was evaluated before is still what the run's folder means.
  const auto inspected = run_well(trained.folder, "stepop inspect " + trained.run);
  CHECK(inspected.out.find("labels/loss") != std::string::npos);
}

TEST_CASE("a split that is there is predicted, with the run's callbacks left out") {
  const Trained trained;
  const auto made = run_well(trained.folder, "stepop predict " + trained.run +
                                                 " -n again --eval_hook/eval_op validation/eval_op "
                                                 "--eval_functor/output logits");
  CHECK(made.out.find("again/accuracy") == std::string::npos);
  const auto found = find_evaluations(trained.folder.path(trained.run));
  CHECK(found.back().name == "again");
  CHECK(EvalFile(found.back().outputs)
            .read("outputs/logits")
            .equal(EvalFile(found.front().outputs).read("outputs/logits")));
}

TEST_CASE("of a batch goes in the only tensor, or the one that is named, and its texts come out") {
  const Trained trained;
  trained.folder.write("new.csv", "name,file\nanne,photos/b.png\nbert,photos/more/a.png\n");
  trained.folder.write(
      "table.yaml",
      "datasets:\n  predict: {class: Csv, path: new.csv, size: [8, 8], channels: 1, "
      "columns: {file: {type: image, key: picture}}}\n");
  const std::string predict = "stepop predict " + trained.run + " -b table.yaml ";
  run_well(trained.folder, predict);
  const EvalFile file(trained.newest().outputs);
  CHECK((file.read_texts("outputs/name", 0, 2) == std::vector<std::string>{"anne", "bert"}));
  CHECK(file.read("outputs/prediction").sizes() == at::IntArrayRef{2, 10});

  trained.folder.write("new.csv", "x,file\n1,photos/b.png\n2,photos/more/a.png\n");
  const CommandResult unclear = run_in(trained.folder, predict);
  CHECK(unclear.exit_code != 0);
  CHECK(unclear.err.find("the batch has x, picture: which of them goes into the network? "
                         "--eval_functor/input KEY") != std::string::npos);
  run_well(trained.folder, predict + "--eval_functor/input picture");
}

TEST_CASE("a prediction without data, with -t, or of what is no run says what is missing") {
  const Trained trained;
  const auto refused = [&](const std::string& words, const std::string& message) {
    const CommandResult result = run_in(trained.folder, "stepop predict " + words);
    CAPTURE(words);
    CHECK(result.err.starts_with("stepop: " + message));
    CHECK(result.exit_code == 2);
  };
  refused(trained.run, "stepop predict: no data: the config has no datasets/predict; give it in");
  refused(trained.run + " -t", "stepop predict does not take -t\n");
  refused(trained.run + " -d", "stepop predict does not take -d\n");
  refused("nowhere", "stepop predict: nowhere: no such folder");
  for (const std::string file : {"net.onnx", "nets/net.pt2", "net.pt"}) {
    refused(file, "stepop predict: " + file + ": no such file\n");
  }
  const CommandResult other = run_in(
      trained.folder, "stepop predict " + trained.run +
                          " --eval_functor '{class: Predict, network: generator}' "
                          "--datasets/predict '{class: ImageFolder, path: photos, classes: [], "
                          "size: [8, 8], channels: 1}'");
  CHECK(other.exit_code != 0);
  CHECK(other.err.find("--eval_functor '{class: Predict, network: NAME}' takes another network") !=
        std::string::npos);
  refused("", "stepop predict: nothing given\nstepop predict RUN");
  refused(
      trained.run + " -n a/b --eval_hook/eval_op validation/eval_op",
      "command line: eval_hook/name: the name of an evaluation has letters, digits, _ and - only");
  CHECK(find_evaluations(trained.folder.path(trained.run)).size() == 1);
}

TEST_CASE("-n gives an evaluation of a run a name, and keeps it apart from the others") {
  const Trained trained;
  const auto named = run_well(
      trained.folder, "stepop -p " + trained.run + " -n noise --evaluations/more {} " +
                          "--datasets/validation '!replace {class: Synthetic, shape: [1, 8, 8], "
                          "size: 40, seed: 7}'");
  CHECK(named.out.find("step 4  noise: loss ") != std::string::npos);
  CHECK(named.out.find("step 4  more: ") == std::string::npos);
  const FoundEvaluation found = trained.newest();
  CHECK(found.name == "noise");
  CHECK(EvalFile(found.outputs).rows() == 40);
  CHECK(run_well(trained.folder, "stepop inspect " + trained.run).out.find(" 355 rows") !=
        std::string::npos);
  // Its callbacks are looked at again under its name.
  const auto again =
      run_well(trained.folder, "stepop eval " + found.folder + " -c confusion_matrix");
  CHECK(again.out.find(": 40 rows of validation at step 4") != std::string::npos);

  const CommandResult in_training =
      run_in(trained.folder, "stepop -p " + trained.run + " -t --eval_hook/name x");
  CHECK(in_training.exit_code == 2);
  CHECK(in_training.err.find("eval_hook/name: is for evaluations without a training") !=
        std::string::npos);
}

}  // namespace predict_test
}  // namespace stepop
