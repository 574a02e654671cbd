#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/distributed/world.h"
#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"

namespace stepop {
namespace templates_test {

const std::string kTemplates = STEPOP_SOURCE_DIR "/iterators/templates/";

/// Runs a line with the cache of all cases: a template is the same source in each of them.
CommandResult run_with_shared_cache(const ScratchFolder& folder, const std::string& line) {
  static const ScratchFolder cache;
  return run_in(folder, "export STEPOP_CACHE='" + cache.path() + "'\n" + line);
}

/// What the next training of a template says: it is compiled by the first one alone. No warning.
std::string compiles_once(const std::string& kind) {
  static std::set<std::string> compiled;
  return compiled.insert(kind).second ? "compiling my_thing.cpp\n" : "";
}

/// Trains a template, in `folder`, for some steps; the last loss that was logged.
double train(const std::string& kind, const std::string& scalar,
             const ScratchFolder& folder = ScratchFolder(), const std::string& more = "") {
  make_new(folder, "my_thing", kind);
  const auto result = run_with_shared_cache(
      folder,
      std::string(
          "stepop -n x -b my_thing.yaml -t --num_steps 40 --log_freq 1 --datasets/train/size 256 "
          "--datasets/validation/size 32 --batch_size 16") +
          more);
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.err == compiles_once(kind));
  const std::string run = only_run(folder);
  CHECK(std::filesystem::exists(folder / (run + "/train/checkpoints/model-40.safetensors")));
  const std::string log = read_bytes(folder / (run + "/train/log.txt"));
  CHECK(log.find("outputs.h5") != std::string::npos);
  const size_t at = log.rfind(scalar + " ");
  REQUIRE(at != std::string::npos);
  return std::stod(log.substr(at + scalar.size() + 1));
}

TEST_CASE("the template of a classifier learns") {
  CHECK(train("classifier", "validation/log_op: loss") < 1.0);  // ln 3 = 1.099 at first
}

TEST_CASE("the template of a regression learns") {
  CHECK(train("regression", "validation/log_op: mse") < 0.5);  // the variance is about 0.6
}

TEST_CASE("the template of an autoencoder learns") {
  CHECK(train("autoencoder", "validation/log_op: mse") < 0.25);  // of -1 everywhere: 0.385
}

TEST_CASE("the template of a GAN trains both networks") {
  const ScratchFolder folder;
  // 2 ln 2: it knows nothing.
  CHECK(train("gan", "train/train_op/discriminator: loss", folder) < 1.386);
  // --check warns of an op that trains and that train_ops leaves out.
  const auto checked = run_with_shared_cache(
      folder,
      "stepop -b my_thing.yaml -t --check --train_ops '[train/train_op/discriminator]' "
      "--datasets/train/size 256 --datasets/validation/size 32 --batch_size 16");
  CHECK(checked.exit_code == 0);
  CHECK(checked.err == "warning: train_ops leaves out what step_op returns: train_op/generator\n");
}

TEST_CASE("the template of a model that knows its loss learns, without an iterator") {
  // Its averages begin after 100 steps; a training that is shorter says so.
  CHECK(train("loss_model", "validation/log_op: loss", ScratchFolder(),
              " --ema/decay/update_after_step 0") < 0.25);  // of -1 everywhere: 0.385
}

TEST_CASE("the template of a table learns, and predicts new rows without the training table") {
  const ScratchFolder folder;
  make_new(folder, "my_thing", "table");
  const auto trained =
      run_with_shared_cache(folder, "stepop -n x -b my_thing.yaml -t --num_steps 150");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.err == compiles_once("table"));
  const std::string run = only_run(folder);
  const std::string log = read_bytes(folder / (run + "/train/log.txt"));
  CHECK(
      log.find("my_thing.csv: left out 10 of 400 rows for missing values; filled missing values of "
               "town in ") != std::string::npos);
  const size_t at = log.rfind("regression/rent: mae ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(log.substr(at + 21)) < 130);  // their standard deviation is about 300
  std::filesystem::remove(folder / "my_thing.csv");
  folder.write("new.csv", "town,area,rooms,year,distance\nBonn,80,3,1990,2\nBerlin,,4,NA,1\n");
  folder.write("new.yaml",
               "datasets: {predict: {class: Standardized, fit: train, dataset: {class: Csv, fit: "
               "train, path: new.csv}}}\n");
  const auto predicted = run_with_shared_cache(
      folder,
      "stepop predict " + run + " -b new.yaml --eval_functor null --eval_hook/eval_callbacks null");
  CHECK_MESSAGE(predicted.exit_code == 0, predicted.err);
  CHECK(predicted.out.find(
            "new.csv: without house, rent, price, which the training table has; filled") !=
        std::string::npos);
}

TEST_CASE("the template of a language model learns, and its log has a text") {
  const ScratchFolder folder;
  make_new(folder, "my_thing", "language_model");
  const auto result = run_with_shared_cache(
      folder,
      "stepop -n x -b my_thing.yaml -t --num_steps 60 --log_freq 30 --model/heads 2 "
      "--model/layers 1 --batch_size 16 --sample_length 40 --n_data_processes 0");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.err == compiles_once("language_model"));
  const std::string run = only_run(folder);
  const std::string log = read_bytes(folder / (run + "/train/log.txt"));
  const std::string scalar = "validation/log_op: loss ";
  const size_t at = log.rfind(scalar);
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(log.substr(at + scalar.size())) < 3.3);  // ln 61 = 4.11 at first
  const std::string logs = folder / (run + "/train/validation/log_op");
  REQUIRE(!std::filesystem::is_empty(logs));
  const auto file = std::filesystem::directory_iterator(logs)->path().string();
  CHECK(file.find("/sample_0") != std::string::npos);
  const std::string sample = read_bytes(file);
  CHECK(sample.find("...\n\n...") != std::string::npos);
  CHECK(sample.size() > 56);
  const auto project = run_in(folder, "stepop new other --template language_model --project");
  CHECK(project.out.find("other/configs/train.txt\n") != std::string::npos);
}

/// The numbers of the last line of the metrics that the processes must agree on.
double last_of(const ScratchFolder& folder, const std::string& scalar) {
  const auto lines = lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto row = nlohmann::json::parse(*line);
    if (row.contains(scalar)) return row.at(scalar).get<double>();
  }
  return std::nan("");
}

/// Lines of 1 to 13 tokens, padded to the longest of their batch.
constexpr const char* kLines = R"(
#include <stepop/stepop.h>
namespace {
class Lines : public stepop::Dataset {
 public:
  explicit Lines(const stepop::Config&) {}
  int64_t size() const override { return 12; }
  stepop::Example get(int64_t index, stepop::Random&) const override {
    const auto ids = torch::arange(2 + index * index % 13).mul(index + 3).remainder(50);
    return {.tensors = {{"tokens", ids.slice(0, 0, -1)}, {"targets", ids.slice(0, 1)}}, .texts = {}};
  }
};
STEPOP_REGISTER_DATASET(Lines, {"Lines.", {}});
}  // namespace
)";

constexpr const char* kPadded = R"(
code: [my_thing.cpp, lines.cpp]
datasets:
  train: !replace {class: Padded, pad: {tokens: 0, targets: -100}, dataset: Lines}
  validation: !replace {class: Padded, pad: {tokens: 0, targets: -100}, dataset: Lines}
samplers: {train: sequential}
model: {heads: 1, layers: 1}
optimizer: !replace {class: SGD, lr: 0.5}
log_ops: []
num_steps: 3
n_data_processes: 0
)";

TEST_CASE("how lines are padded changes neither the training nor the evaluation") {
  double first = 0;
  for (const char* words :
       {"--batch_size 12 --test_batch_size 12", "--batch_size 12 --test_batch_size 1",
        "--batch_size 12 --test_batch_size 5", "--batch_size 3 --accumulate 4 --test_batch_size 2",
        "--batch_size 5 --accumulate 3", "--batch_size 12 --processes 3",
        "--batch_size 6 --accumulate 2 --processes 2"}) {
    CAPTURE(words);
    if (std::string(words).find("processes") != std::string::npos && !World::can_join()) continue;
    const ScratchFolder folder;
    make_new(folder, "my_thing", "language_model");
    folder.write("lines.cpp", kLines);
    folder.write("more.yaml", kPadded);
    const auto result = run_with_shared_cache(
        folder,
        fmt::format("export OMP_NUM_THREADS=1; stepop -n x -b my_thing.yaml more.yaml -t {}",
                    words));
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    const double loss = last_of(folder, "validation/eval_op/loss");
    if (first == 0) first = loss;
    CHECK(loss == doctest::Approx(first).epsilon(1e-5));
  }
}

TEST_CASE("every template trains in two processes as in one") {
  if (!World::can_join()) return;
  struct Template {
    std::string kind;
    std::string scalar;
    std::string words;
    double tolerance;  ///< Larger where steps draw random numbers.
  };
  const std::string small =
      "--datasets/train/size 128 --datasets/validation/size 32 --batch_size 16";
  const std::vector<Template> templates = {
      {"classifier", "validation/log_op/loss", small, 1e-3},
      {"regression", "validation/log_op/mse", small, 1e-3},
      {"autoencoder", "validation/log_op/mse", small, 1e-3},
      {"loss_model", "validation/log_op/loss", small + " --ema/decay/update_after_step 0", 1e-3},
      {"gan", "train/train_op/discriminator/loss", small, 0.5},
      {"table", "validation/log_op/mse", "", 1e-3},
      {"language_model", "validation/log_op/loss",
       "--model/heads 2 --model/layers 1 --batch_size 16 --sample_length 40", 0.3},
  };
  for (const auto& [kind, scalar, words, tolerance] : templates) {
    CAPTURE(kind);
    double alone = 0;
    for (const int processes : {1, 2}) {
      CAPTURE(processes);
      const ScratchFolder folder;
      make_new(folder, "my_thing", kind);
      const CommandResult result = run_with_shared_cache(
          folder, fmt::format("export OMP_NUM_THREADS=1; stepop -n x -b my_thing.yaml -t "
                              "--num_steps 12 --log_freq 4 --n_data_processes 0 --processes {} {}",
                              processes, words));
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      CHECK(result.err == compiles_once(kind));
      CHECK(!std::filesystem::exists(folder / (only_run(folder) + "/train/rank-1.log")));
      const double loss = last_of(folder, scalar);
      CAPTURE(loss);
      CAPTURE(alone);
      if (processes == 1) alone = loss;
      CHECK(std::abs(loss - alone) <= tolerance * (1 + std::abs(alone)));
    }
  }
}

TEST_CASE("no template has more than 130 lines") {
  int templates = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kTemplates)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_bytes(entry.path().string());
    CHECK_MESSAGE(std::count(text.begin(), text.end(), '\n') <= 130, entry.path().string());
    ++templates;
  }
  CHECK(templates == 7);
}

TEST_CASE("a new folder never replaces one, and its name becomes a class") {
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop new my_net").out ==
        "my_net/README.md\nmy_net/config.schema.json\nmy_net/my_net.cpp\nmy_net/my_net.yaml\n\ncd "
        "my_net\n" STEPOP_BINARY_DIR
        "/stepop -n first -b my_net.yaml -t\n\nfirst hour: " STEPOP_SOURCE_DIR
        "/iterators/FIRST_HOUR.md\nguide: " STEPOP_SOURCE_DIR "/iterators/README.md\n");
  CHECK(read_bytes(folder / "my_net/my_net.cpp").find("class MyNetNetwork") != std::string::npos);
  const auto refused = [&](const std::string& line) {
    const auto result = run_in(folder, line);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(refused("stepop new my_net") ==
        "stepop: stepop new: my_net is there already; nothing was changed\n");
  for (const auto& [name, proposal] :
       std::vector<std::pair<std::string, std::string>>{{"3d", "my_3d"},
                                                        {"_x", "x"},
                                                        {"a-b--c", "a_b_c"},
                                                        {"größe", "gr_e"},
                                                        {"a b", "a_b"},
                                                        {"-", "my_model"},
                                                        {"日本", "my_model"},
                                                        {"a;touch x", "a_touch_x"}}) {
    CAPTURE(name);
    CHECK(refused("stepop new './" + name + "'") ==
          "stepop: stepop new: \"" + name +
              "\" cannot become the name of a class, which has English letters, digits and _, and "
              "begins with a letter; try \"" +
              proposal + "\"\n");
  }
  CHECK(refused("stepop new iterator") ==
        "stepop: stepop new: \"iterator\" would make a class Iterator of the class "
        "stepop::Iterator; try \"my_iterator\"\n");
  CHECK(refused("stepop new loss_model --template loss_model") ==
        "stepop: stepop new: \"loss_model\" would make a class LossModel of the class "
        "stepop::LossModel; try \"my_loss_model\"\n");
  CHECK(refused("stepop new classifier") ==
        "stepop: stepop new: \"classifier\" would make a class Classifier, and stepop has the "
        "iterator Classifier already; try \"my_classifier\"\n");
  CHECK(refused("stepop new NULL") ==
        "stepop: stepop new: \"NULL\" is a macro, which cannot be the name of a class; try "
        "\"my_NULL\"\n");
  for (const std::string name : {"test", "stepop"}) {
    CHECK(refused("stepop new " + name + " --project") ==
          "stepop: stepop new: \"" + name +
              "\" cannot become a target of CMake, which uses this name itself; try "
              "\"my_" +
              name + "\"\n");
  }
  CHECK(run_in(folder, "ls").out == "my_net\n");
  CHECK(refused("stepop new x --template clasifier")
            .starts_with("stepop: --template clasifier: there are classifier, "));
  CHECK(refused("stepop new").starts_with("stepop: stepop new: nothing given\nstepop new NAME "));
}

TEST_CASE("GCC compiles each template without a warning, as Clang does") {
  // The other tests take Clang where it is installed. All templates are one source here, so that
  // what they share of LibTorch is instantiated once; one that does not include stepop.h itself, as
  // to precompile that takes GCC longer than all of this.
  const ScratchFolder folder;
  const auto gcc =
      run_in(folder, "sed -n 's/.*\"compiler\": \"\\(.*\\)\",/\\1/p' '" STEPOP_BINARY_DIR
                     "/libstepop.json'");
  REQUIRE(std::filesystem::exists(gcc.out.substr(0, gcc.out.find('\n'))));
  const std::string with = "export STEPOP_CXX=" + gcc.out;
  std::string all;
  for (const std::string kind : {"classifier", "regression", "table", "autoencoder", "gan",
                                 "loss_model", "language_model"}) {
    make_new(folder, "my_" + kind, kind);
    all += "#include \"my_" + kind + ".cpp\"\n";
  }
  folder.write("all.cpp", all);
  folder.write("all.yaml", "code: all.cpp\n");
  const auto result = run_with_cache(folder, with + "stepop list -b all.yaml");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.err.ends_with("compiling all.cpp\n"));
  for (const std::string name : {"MyClassifier", "MyRegression", "MyTable", "MyAutoencoder",
                                 "MyGan", "MyLossModel", "MyLanguageModel"}) {
    CHECK_MESSAGE(result.out.find("  " + name) != std::string::npos, name);
  }
}

TEST_CASE("words of C++ and names of our own classes are names of projects that compile") {
  const ScratchFolder folder;
  run_in(folder, "for name in class dataset; do stepop new $name; done");
  for (const std::string name : {"class", "dataset"}) {
    CAPTURE(name);
    const auto result = run_with_cache(folder, "cd " + name + " && stepop -n x -b " + name +
                                                   ".yaml -t --num_steps 1 --log_freq 1");
    CHECK(result.exit_code == 0);
    CHECK(result.err == "compiling " + name + ".cpp\n");
  }
}

}  // namespace templates_test
}  // namespace stepop
