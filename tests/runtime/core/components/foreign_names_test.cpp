#include "runtime/core/components/foreign_names.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>

#include "runtime/core/config/resolve.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace foreign_names_test {

const char* const kBase =
    "iterator: Classifier\noptimizer: {class: Adam}\nmodel: LeNet\n"
    "datasets: {train: {class: Synthetic}, validation: {class: Synthetic}}\n"
    "batch_size: 4\nnum_steps: 2\nn_data_processes: 0\n";

/// What a session says of a config.
std::string refused(const std::string& yaml) {
  return message_of(
      [&] { Session(test_config(yaml), /*train=*/true, /*debug=*/false, /*unknown=*/false); });
}

std::vector<std::string> words_of(std::string_view names) {
  std::istringstream text{std::string(names)};
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

TEST_CASE("what is suggested for a key from elsewhere is known, and a training takes it") {
  for (const auto& row : foreign_names()) {
    CAPTURE(row.names);
    CHECK((!row.example.empty() || !row.note.empty()));
    if (row.example.empty()) continue;
    const ScratchFolder folder;
    folder.write("base.yaml", kBase);
    // A registered one in the place of any.
    std::string example(row.example);
    for (const auto& [any, name] : {std::pair("NETWORK", "LeNet"), {"ITERATOR", "Classifier"}}) {
      if (const size_t at = example.find(any); at != std::string::npos) {
        example.replace(at, std::strlen(any), name);
      }
    }
    folder.write("over.yaml", example + "\n");
    const Config config(resolve_config({folder.path("base.yaml"), folder.path("over.yaml")}, {}));
    CHECK(message_of([&] { Session(config, true, false, false).check(); }) == "no error");
    const std::vector<std::string> known = config.known_paths();
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const auto& path) {
      return path == row.key() || path.starts_with(row.key() + "/");
    });
    // The files that a config includes are read before there is a config.
    CHECK((is_known || row.key() == "include"));
  }
}

TEST_CASE("no name from elsewhere stands in two rows, or is a key here") {
  std::set<std::string> seen;
  for (const auto& row : foreign_names()) {
    for (const std::string& name : words_of(row.names)) {
      CAPTURE(name);
      CHECK(seen.insert(name.starts_with("*/") ? name.substr(2) : name).second);
      CHECK(name != row.key());
    }
  }
  CHECK(seen.size() > 150);
}

TEST_CASE("a key from elsewhere is answered with the key here, by its meaning before its letters") {
  const std::string base(kBase);
  const std::string unknown = "\n(--allow-unknown makes this a warning)";
  CHECK(refused(base + "num_workers: 2\n") ==
        "test.yaml:8: unknown key \"num_workers\": did you mean \"n_data_processes\"?" + unknown);
  CHECK(refused(base + "val_freq: 2\n") ==
        "test.yaml:8: unknown key \"val_freq\": did you mean \"eval_hook/freq\"? As in eval_hook: "
        "{freq: 1e}; 1e is an epoch, 500 are steps" +
            unknown);
  CHECK(refused(base + "dataroot: photos\n") ==
        "test.yaml:8: unknown key \"dataroot\": a dataset of a folder has \"path\", of pairs "
        "\"folder\", below datasets/train" +
            unknown);
  CHECK(refused(base + "fast_dev_run: true\n") ==
        "test.yaml:8: unknown key \"fast_dev_run\": --check tries every op on one batch, -d is a "
        "run of 10 steps" +
            unknown);
}

TEST_CASE("where a key is missing, one from elsewhere that means it is named with its place") {
  CHECK(refused("defaults: [base]\nnum_epochs: 3\n") ==
        "test.yaml:1: defaults: \"iterator\" is missing; did you mean \"include\"? As in include: "
        "[base.yaml]; names are relative to this file");
  const std::string base = kBase;
  const auto without = [&](const std::string& line, const std::string& other) {
    std::string text = base;
    return text.replace(text.find(line), line.size(), other);
  };
  CHECK(refused(without("num_steps: 2", "epochs: 20")) ==
        "test.yaml:6: epochs: did you mean \"num_epochs\", which is missing?");
  CHECK(refused(without("optimizer: {class: Adam}", "optimizer: {name: Adam}")) ==
        "test.yaml:2: optimizer/name: did you mean \"optimizer/class\", which is missing?");
  CHECK(refused(without("model: LeNet", "model: {_target_: LeNet}")) ==
        "test.yaml:3: model/_target_: did you mean \"model/class\", which is missing?");
  CHECK(refused(without("optimizer: {class: Adam}", "lr: 1e-3")) ==
        "test.yaml:2: lr: \"optimizer\" is missing; did you mean \"optimizer/lr\"?");
}

TEST_CASE("a class by another name beside the class is answered with its key") {
  std::string text = kBase;
  text.replace(text.find("{class: Adam}"), 13, "{class: Adam, type: SGD}");
  CHECK(
      refused(text).starts_with("test.yaml:2: unknown key \"optimizer/type\": did you mean "
                                "\"optimizer/class\"?"));
}

TEST_CASE("a key that another component reads is named with that component") {
  CHECK(refused(std::string(kBase) + "sampling: {a: {class: NoiseToImage}}\n")
            .starts_with("test.yaml:8: unknown key \"sampling\": AdversarialTrainer, Trainer read "
                         "it, but not Classifier, which is the iterator here"));
  std::string text = kBase;
  text.replace(text.find("{class: Adam}"), 13, "{class: Adam, nesterov: true}");
  CHECK(
      refused(text).starts_with("test.yaml:2: unknown key \"optimizer/nesterov\": Muon, SGD read "
                                "it, but not Adam, which is the optimizer here"));
}

TEST_CASE("a path with dots is answered with slashes") {
  CHECK(refused(std::string(kBase) + "optimizer.lr: 3\n")
            .starts_with("test.yaml:8: unknown key \"optimizer.lr\": did you mean "
                         "\"optimizer/lr\"? The keys of a path are separated by slashes, as in "
                         "--optimizer/lr VALUE, or one below the other"));
}

TEST_CASE("a component's name in other letters is asked for") {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kBase;
    return refused(text.replace(text.find(from), from.size(), to));
  };
  CHECK(error("{class: Adam}", "adam")
            .find("unknown optimizer \"adam\": did you mean \"Adam\"? Known are: Adam, ") !=
        std::string::npos);
  CHECK(error("model: LeNet", "model: lenet").find("did you mean \"LeNet\"?") != std::string::npos);
  CHECK(
      error("iterator: Classifier", "iterator: classifier").find("did you mean \"Classifier\"?") !=
      std::string::npos);
  CHECK(refused(std::string(kBase) + "device: gpu\n") ==
        "test.yaml:8: device: expected auto, cpu, cuda or cuda:<number>, found \"gpu\"; did you "
        "mean cuda?");
}

TEST_CASE("a key without its last letter is that key before it is one from elsewhere") {
  CHECK(refused(std::string(kBase) +
                "eval_hook: {eval_callbacks: {m: {class: confusion_matrix, class_name: [a]}}}\n")
            .find("did you mean \"eval_hook/eval_callbacks/m/class_names\"?") != std::string::npos);
}

TEST_CASE("what is suggested for a class from elsewhere is known, and a training takes it") {
  for (const auto& row : foreign_classes()) {
    CAPTURE(row.names);
    CHECK((!row.example.empty() || !row.note.empty()));
    if (row.example.empty()) continue;
    const ScratchFolder folder;
    folder.write("base.yaml", kBase);
    folder.write("over.yaml", std::string(row.example) + "\n");
    const Config config(resolve_config({folder.path("base.yaml"), folder.path("over.yaml")}, {}));
    CHECK(message_of([&] { Session(config, true, false, false).check(); }) == "no error");
  }
}

TEST_CASE("a hook or callback of Lightning is answered with the key that does the same") {
  const std::string base = kBase;
  CHECK(refused(base + "hooks: [EarlyStopping]\n") ==
        "test.yaml:8: hooks/0: unknown hook \"EarlyStopping\": that is a key of the config here: "
        "stop_when: {metric: validation/eval_op/loss, mode: min, patience: 5}");
  CHECK(refused(base + "eval_hook: {eval_callbacks: {a: {class: ModelCheckpoint}}}\n") ==
        "test.yaml:8: eval_hook/eval_callbacks/a/class: unknown callback \"ModelCheckpoint\": that "
        "is a key of the config here: checkpoints: {metric: validation/eval_op/loss, mode: min, "
        "keep_last: 1, keep_best: 3}; ckpt_freq says how often");
  CHECK(refused(base + "hooks: {rate: {class: LearningRateMonitor}}\n") ==
        "test.yaml:8: hooks/rate/class: unknown hook \"LearningRateMonitor\": learning rates are "
        "logged by themselves, as runtime/<optimizer>/lr");
}

TEST_CASE("a component of another kind is answered with what to write for it") {
  const std::string base = kBase;
  const auto said = [&](const std::string& more) {
    const std::string message = refused(base + more);
    const size_t begin = message.find("unknown ");
    return begin == std::string::npos ? message : message.substr(begin);
  };
  CHECK(said("eval_hook: {eval_callbacks: {stop: StopAt}}\n") ==
        "unknown callback \"StopAt\": that is a hook: hooks: {NAME: StopAt}");
  CHECK(said("hooks: {acc: accuracy}\n") ==
        "unknown hook \"accuracy\": that is a callback: eval_hook: {eval_callbacks: {NAME: "
        "accuracy}}");
  CHECK(said("metrics: {matrix: {class: confusion_matrix, normalize: true}}\n") ==
        "unknown metric \"confusion_matrix\": that is a callback: eval_hook: {eval_callbacks: "
        "{NAME: {class: confusion_matrix, normalize: true}}}");
  std::string schedule = kBase;
  schedule.replace(schedule.find("Adam"), 4, "cosine");
  CHECK(
      refused(schedule).ends_with("unknown optimizer \"cosine\": that is a schedule: optimizer: "
                                  "{lr: {class: cosine}}"));
}

}  // namespace foreign_names_test
}  // namespace stepop
