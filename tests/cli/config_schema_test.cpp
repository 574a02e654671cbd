// `stepop config --schema`, with a validator from Python.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.h"
#include "tests/places.h"

namespace stepop {
namespace config_schema_test {

namespace fs = std::filesystem;

const std::string kCheck =
    STEPOP_SOURCE_DIR "/.venv/bin/python3 " STEPOP_SOURCE_DIR "/tests/cli/config_schema.py ";

/// A line for each file, in their order.
std::vector<std::string> check(const ScratchFolder& folder, const std::string& schema,
                               const std::vector<std::string>& files) {
  std::string line = kCheck + schema;
  for (const auto& file : files) line += " '" + file + "'";
  const auto result = run_in(folder, line);
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  std::vector<std::string> lines;
  std::istringstream text(result.out);
  for (std::string each; std::getline(text, each);) lines.push_back(each);
  CHECK(lines.size() == files.size());
  lines.resize(files.size());
  return lines;
}

TEST_CASE("every config of the tree fits the schema") {
  std::vector<std::string> files;
  for (const char* place : {"/configs", "/iterators/templates", "/tests/cli/guide"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(STEPOP_SOURCE_DIR) + place)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
    }
  }
  CHECK(files.size() >= 22);
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop config --schema > s.json").exit_code == 0);
  for (const auto& line : check(folder, "s.json", files)) CHECK(line.starts_with("ok "));
}

TEST_CASE("a template's config names its schema, and fits that of its own code") {
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop new a && stepop new b --project").exit_code == 0);
  const std::string first = "# yaml-language-server: $schema=config.schema.json\n";
  CHECK(read_bytes(folder / "a/a.yaml").starts_with(first));
  CHECK(read_bytes(folder / "b/configs/b.yaml").starts_with(first));
  CHECK(fs::exists(folder / "b/configs/config.schema.json"));
  CHECK(check(folder, "a/config.schema.json", {"a/a.yaml", "b/configs/b.yaml"}) ==
        std::vector<std::string>{"ok a/a.yaml", "ok b/configs/b.yaml"});

  CHECK(run_in(folder, "stepop config -b a/a.yaml --schema > s.json").exit_code == 0);
  folder.write("wrong.yaml", "iterator: MyModel\n");
  CHECK(check(folder, "s.json", {"a/a.yaml"}).front() == "ok a/a.yaml");
  CHECK_FALSE(check(folder, "s.json", {"wrong.yaml"}).front().starts_with("ok"));
}

TEST_CASE("every form that a key may have fits the schema") {
  const ScratchFolder folder;
  folder.write(
      "a.yaml",
      "hooks: [MyHook, {class: Other, x: 3}, {class: LargestGradients, when: 5e}]\n"
      "checkpoint_modules: decoder\n"
      "log_freq: {every: 5, at_start: \"{extra/yes}\", grow: null}\n"
      "log_ops: [train/log_op, {op: validation/log_op, when: 2e, images: {format: png}}]\n"
      "optimizer: null\nbatch_size: {per_process: 4}\nnum_epochs: 0.5\n"
      "ema: {decay: {class: power_law, max: 0.99}}\ninit_from: [a.safetensors, {path: b}]\n"
      "model: \"{extra/model}\"\nextra: {yes: true, model: LeNet}\n");
  CHECK(run_in(folder, "stepop config --schema > s.json").exit_code == 0);
  CHECK(check(folder, "s.json", {"a.yaml"}).front() == "ok a.yaml");
  const auto both = run_in(folder, "stepop config --keys --schema -b a.yaml");
  CHECK(both.err.find("give one of --keys, --paths and --schema") != std::string::npos);
}

TEST_CASE("fifty mistakes do not fit the schema") {
  const std::string whole =
      "iterator: Classifier\nmodel: {class: LeNet}\n"
      "datasets: {train: {class: Synthetic, size: 8}}\nbatch_size: 4\nnum_epochs: 2\n"
      "optimizer: {class: Adam, lr: 1e-3}\n";
  const std::vector<std::pair<std::string, std::string>> replaced = {
      {"batch_size: 4", "batchsize: 4"},
      {"batch_size: 4", "batch_size: four"},
      {"batch_size: 4", "batch_size: 0"},
      {"batch_size: 4", "batch_size: 4.5"},
      {"batch_size: 4", "batch_size: [4]"},
      {"num_epochs: 2", "num_epochs: two"},
      {"num_epochs: 2", "epochs: 2"},
      {"num_epochs: 2", "num_epoch: 2"},
      {"class: LeNet", "class: LeNett"},
      {"class: LeNet", "class: LeNet, hiden: [3]"},
      {"class: Synthetic", "class: Sinthetic"},
      {"size: 8", "sise: 8"},
      {"class: Adam", "class: Adamm"},
      {"lr: 1e-3", "learning_rate: 1e-3"},
      {"lr: 1e-3", "lr: 1e-3, amsgrad: sometimes"},
      {"iterator: Classifier", "iterator: Clasifier"},
      {"iterator: Classifier", "iteratr: Classifier\niterator: Classifier"},
      {"model: {class: LeNet}", "model: [LeNet]"},
  };
  const std::vector<std::string> added = {
      "num_steps: 0",
      "num_steps: 1.5",
      "max_time: 90",
      "max_time: 3x",
      "stop_when: {metrik: a/b}",
      "stop_when: {metric: a/b, mode: most, patience: 3e}",
      "stop_when: {metric: a/b, mode: max, patience: 3x}",
      "stop_when: 3",
      "on_nan: halt",
      "drop_last: 1",
      "log_freq: 3x",
      "log_freq: {evry: 3}",
      "log_freq: {every: 3, at_start: 1}",
      "log_ops: train/log_op",
      "log_ops: [log_op]",
      "log_ops: [{op: train/log_op, wen: 3}]",
      "log_images: {format: gif}",
      "log_images: {quality: best}",
      "ema: {dekay: 0.9}",
      "ema: 0.9",
      "swa: {form: 3e}",
      "eval_weights: emma",
      "checkpoints: {keep: 3}",
      "checkpoints: {keep_last: -1}",
      "checkpoints: {metric: a/b, mode: maximum}",
      "ckpt_zero: 3",
      "eval_hook: {frq: 2e}",
      "eval_hook: {compression: zip}",
      "eval_hook: {max_batches: many}",
      "eval_hook: {eval_callbacks: [accuracy]}",
      "eval_hook: {eval_callbacks: {a: acuracy}}",
      "eval_hook: {eval_callbacks: {a: {class: accuracy, lgits: x}}}",
      "evaluations: {a: {freq: 2e, eval_opp: test/eval_op}}",
      "evaluations: [a]",
      "freeze: {match: a}",
      "freeze: [{macth: a}]",
      "stages: [{train_ops: [train/train_op], four: 3}]",
      "samplers: {train: shufle}",
      "precision: half",
      "thread_wait: sometimes",
      "num_threads: 0",
      "seed: random",
      "distributed: {timeout: 5}",
      "distributed: {sync_batchnorm: true}",
      "debug: {max_step: 3}",
      "telemetry: {active: often}",
      "telemetry: {wieghts: 3}",
      "hooks: {a: {class: NoSuchHook}}",
      "hooks: {a: {class: LargestGradients, when: often}}",
      "eval_filter: {steps: 100}",
      "data_checksums: all",
      "n_prefetch: 0",
      "loging: 3",
  };
  const ScratchFolder folder;
  folder.write("whole.yaml", whole);
  std::vector<std::string> files = {"whole.yaml"};
  std::vector<std::string> mistakes;
  const auto add = [&](const std::string& mistake, const std::string& text) {
    files.push_back(fmt::format("{}.yaml", mistakes.size()));
    folder.write(files.back(), text);
    mistakes.push_back(mistake);
  };
  for (const auto& [what, by] : replaced) {
    std::string text = whole;
    text.replace(text.find(what), what.size(), by);
    add(by, text);
  }
  for (const auto& more : added) add(more, whole + more + "\n");
  CHECK(run_in(folder, "stepop config -b whole.yaml --schema > s.json").exit_code == 0);
  const auto lines = check(folder, "s.json", files);
  CHECK(lines.front() == "ok whole.yaml");
  CHECK(mistakes.size() >= 50);
  for (size_t i = 0; i < mistakes.size(); ++i) {
    CAPTURE(mistakes[i]);
    CHECK_FALSE(lines[i + 1].starts_with("ok"));
  }
}

}  // namespace config_schema_test
}  // namespace stepop
