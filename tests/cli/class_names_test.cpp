// A class has one number in a run and in all that is made of it, with the real binary.
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace class_names_test {

/// Images of one grey in the folder of each class.
void draw(const ScratchFolder& folder, const std::string& name,
          const std::vector<std::pair<std::string, int>>& greys) {
  for (const auto& [each, grey] : greys) {
    for (int i = 0; i < 4; ++i) {
      folder.write(fmt::format("{}/{}/{}.png", name, each, i),
                   encode_png(at::full({2, 2, 3}, grey + i, at::kByte)));
    }
  }
}

/// A training of three greys whose validation lacks the first one.
struct Trained {
  Trained() {
    draw(folder, "tr", {{"ant", 10}, {"bee", 120}, {"cat", 240}});
    draw(folder, "va", {{"bee", 120}, {"cat", 240}});
    draw(folder, "new", {{"cat", 240}, {"bee", 120}});
    folder.write("a.yaml", R"(
iterator: Classifier
model: {class: MLP, inputs: 12, hidden: [16], classes: 3}
datasets:
  train: {class: ImageFolder, path: tr}
  validation: {class: ImageFolder, path: va}
batch_size: 12
num_steps: 60
optimizer: {class: Adam, lr: 3e-2}
eval_hook: {eval_callbacks: {matrix: confusion_matrix}}
)");
    result = run_well(folder, "stepop -n a -b a.yaml -t");
    run = only_run(folder);
  }

  /// The labels and the share of right ones of the newest evaluation.
  std::pair<std::vector<int64_t>, double> newest() const {
    const EvalFile file(find_evaluations(folder.path(run)).back().outputs);
    const at::Tensor classes = file.read("outputs/class");
    const at::Tensor right = file.read("outputs/logits").argmax(1).eq(classes);
    return {values_of<int64_t>(classes), right.to(at::kDouble).mean().item<double>()};
  }

  ScratchFolder folder;
  CommandResult result;
  std::string run;
};

TEST_CASE("a run's classes have their names and numbers wherever it is evaluated") {
  const Trained trained;
  CHECK(trained.result.out.find("class_names:\n  class: [ant, bee, cat]\n") != std::string::npos);
  CHECK(trained.result.out.find("datasets/validation: no example of \"ant\"\n") !=
        std::string::npos);
  const std::vector<int64_t> numbers = {1, 1, 1, 1, 2, 2, 2, 2};
  CHECK(trained.newest() == std::pair(numbers, 1.0));
  const auto found = find_evaluations(trained.folder.path(trained.run)).back();
  const auto table =
      read_bytes(std::filesystem::path(found.outputs).parent_path() / "matrix/matrix.csv");
  CHECK(table == "true \\ predicted,ant,bee,cat\nant,0,0,0\nbee,0,4,0\ncat,0,0,4\n");
  CHECK(run_python("import sys, h5py\nsys.path.append(sys.argv[2])\nimport stepop.eval\n"
                   "f = h5py.File(sys.argv[1])\n"
                   "print(list(f['outputs/class'].attrs['class_names']))\n"
                   "print(stepop.eval.open(sys.argv[1]).class_names('class'))\n",
                   {found.outputs, STEPOP_SOURCE_DIR "/eval_out/python"}) ==
        "['ant', 'bee', 'cat']\n['ant', 'bee', 'cat']\n");

  run_well(trained.folder, "stepop report " + trained.run + " report.html");
  CHECK(read_bytes(trained.folder.path("report.html")).find("2 cat") != std::string::npos);

  // The training's folders are not needed any more.
  std::filesystem::rename(trained.folder.path("tr"), trained.folder.path("elsewhere"));
  run_well(trained.folder, "stepop -p " + trained.run + " --datasets/validation/path new");
  CHECK(trained.newest() == std::pair(numbers, 1.0));
  draw(trained.folder, "new", {{"dog", 60}});
  const auto refused =
      run_in(trained.folder, "stepop -p " + trained.run + " --datasets/validation/path new");
  CHECK(refused.exit_code != 0);
  CHECK(refused.err.find("new/dog: expected a class of the training: ant, bee, cat (") !=
        std::string::npos);
  CHECK(refused.err.find("class_names/class; with \"unknown: id\" any other has the "
                         "number 3)") != std::string::npos);
}

TEST_CASE("a run of an earlier version takes the numbers of its training's folders") {
  const Trained trained;
  // As it was saved before: without the names.
  run_well(trained.folder,
           "sed -i '/^class_names:/,+1d' " + trained.run + "/configs/*.yaml; rm -r va; mv new va");
  const auto evaluated = run_well(trained.folder, "stepop -p " + trained.run);
  CHECK(trained.newest().second == 1.0);
  std::filesystem::rename(trained.folder.path("tr"), trained.folder.path("elsewhere"));
  run_well(trained.folder, "sed -i '/^class_names:/,+1d' " + trained.run + "/configs/*.yaml");
  const auto lost = run_well(trained.folder, "stepop -p " + trained.run);
  CHECK(lost.out.find("datasets/validation: the classes of the training are not known, as "
                      "datasets/train cannot be read (") != std::string::npos);
  CHECK(trained.newest().first == std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("an exported file has the names, and what it is given has their numbers") {
  const Trained trained;
  trained.folder.write("new.yaml",
                       "datasets: {predict: {class: ImageFolder, path: new}}\nbatch_size: 8\n");
  for (const std::string ending : {"pt", "pt2", "onnx"}) {
    CAPTURE(ending);
    const auto exported =
        run_in(trained.folder, "stepop export " + trained.run + " -o net." + ending);
    REQUIRE(exported.exit_code == 0);
    CHECK(exported.out.find("classes   in the file: {\"class\": [\"ant\", \"bee\", \"cat\"]}\n") !=
          std::string::npos);
    const auto made = run_in(trained.folder, "stepop predict net." + ending + " -b new.yaml");
    CHECK(made.exit_code == 0);
    CHECK(made.out.find("class: [ant, bee, cat]") != std::string::npos);
    CHECK(made.out.find("datasets/predict: no example of \"ant\"\n") != std::string::npos);
  }
}

TEST_CASE("pictures without classes are predicted by a run whose training has names") {
  const Trained trained;
  const auto made = run_in(
      trained.folder, "stepop predict " + trained.run +
                          " --datasets/predict '{class: ImageFolder, path: new/bee, classes: []}'");
  CHECK_MESSAGE(made.exit_code == 0, made.err);
}

TEST_CASE("stepop data has the names of classes beside their numbers") {
  const Trained trained;
  const auto shown = run_well(trained.folder, "stepop data -b a.yaml validation");
  CHECK(shown.out.find("1 bee: 4, 2 cat: 4") != std::string::npos);
}

}  // namespace class_names_test
}  // namespace stepop
