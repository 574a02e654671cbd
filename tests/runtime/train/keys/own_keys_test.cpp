#include "runtime/train/keys/own_keys.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "runtime/core/config/resolve.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace own_keys_test {

std::vector<std::string> paths_of(const std::string& yaml) {
  return own_key_paths(Config(parse_yaml(yaml, {"a.yaml", 0})));
}

bool has(const std::vector<std::string>& paths, const std::string& path) {
  return std::ranges::find(paths, path) != paths.end();
}

/// The rows of all keys in Markdown.
std::string rows_of_all_keys() {
  std::string text = "\n";
  for (const OwnKey& key : own_keys()) {
    std::string type = key.type.text();
    for (size_t at = type.find('|'); at != std::string::npos; at = type.find('|')) {
      type.replace(at, 1, "or");
    }
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.path, type, key.default_value, key.about);
  }
  return text;
}

/// Registers a key under another name than it reads.
class TestMisspells : public Network {
 public:
  explicit TestMisspells(const Config& params) {
    const int64_t width = params.get_at_least("widht", 1, 9);
    layer_ = register_module("layer", torch::nn::Linear(9, width));
  }
  at::Tensor forward(const at::Tensor& input) override { return layer_(input.flatten(1)); }

 private:
  torch::nn::Linear layer_ = nullptr;
};
STEPOP_REGISTER_MODEL(TestMisspells, {"For tests.", {{"width", "9", "of the layer"}}});

TEST_CASE("a key that a component registers and reads under another name is told so") {
  const std::string yaml =
      "iterator: Classifier\ndevice: cpu\nmodel: {class: TestMisspells}\nbatch_size: 4\n"
      "datasets: {train: {class: Synthetic, size: 8, shape: [1, 3, 3], classes: 3}}\n"
      "num_steps: 1\noptimizer: SGD\n";
  const std::string text =
      "unknown key \"model/width\": TestMisspells registers it, but its code does not read it; it "
      "reads \"model/widht\"";
  // Also where the class comes from another file than the key.
  for (const char* file : {"a.yaml", "b.yaml"}) {
    CAPTURE(file);
    Value root = parse_yaml(yaml, {"a.yaml", 0});
    root.find("model")->as_map().set("width", Value(int64_t{4}).set_origin({file, 1}));
    const std::string message =
        message_of([&] { Session(Config(std::move(root)), true, false, false); });
    CHECK(message.find(text) != std::string::npos);
  }
}

TEST_CASE("the keys in configs/README.md are as the runtime has them") {
  std::istringstream page(read_bytes(STEPOP_SOURCE_DIR "/configs/README.md"));
  const std::string all = rows_of_all_keys();
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    // A key's row has four columns.
    if (!line.starts_with("| `") || std::ranges::count(line, '|') < 5) continue;
    CAPTURE(line);
    CHECK(all.find("\n" + line + "\n") != std::string::npos);
    ++rows;
  }
  CHECK(rows > 10);
}

TEST_CASE("each key has one row") {
  std::set<std::string_view> paths;
  for (const OwnKey& key : own_keys()) {
    CAPTURE(std::string(key.path));
    CHECK(paths.insert(key.path).second);
    CHECK_FALSE(key.about.empty());
    CHECK_FALSE(key.default_value.empty());
  }
}

TEST_CASE("a star stands for each name of a map and each place of a list") {
  const auto paths = paths_of(
      "evaluations: {fast: {freq: {every: 5}}, slow: null}\n"
      "log_ops: [train/log_op, {op: train/other, when: 5}]\n"
      "freeze: [{match: a}, {match: b}]\n");
  CHECK(has(paths, "evaluations/fast/freq"));
  CHECK(has(paths, "evaluations/slow/freq"));
  CHECK(has(paths, "evaluations/fast/freq/until"));
  CHECK_FALSE(has(paths, "evaluations/slow/freq/until"));
  CHECK(has(paths, "log_ops/1/when"));
  CHECK_FALSE(has(paths, "log_ops/0/when"));  // a text has no keys
  CHECK(has(paths, "freeze/1/until"));
  CHECK_FALSE(has(paths, "freeze/2/until"));
  CHECK_FALSE(has(paths, "samplers/train"));
  CHECK(has(paths, "eval_hook/freq"));  // also where the config has no such map

  CHECK(find_own_key("evaluations/fast/freq")->type.kind == "time");
  CHECK(find_own_key("freeze/17/match")->type.kind == "regex");
  CHECK(find_own_key("evaluations/fast/frq") == nullptr);
  CHECK(find_own_key("evaluations/fast") == nullptr);
  CHECK(find_own_key("freq") == nullptr);
}

TEST_CASE("a use of a whole map is one of its rows too, and otherwise all rows must have it") {
  const auto same_cost = top_keys_with(kSameCost);
  CHECK(has(same_cost, "stop_when"));  // by the row of the map
  CHECK(has(same_cost, "telemetry"));  // by each row
  CHECK(has(same_cost, "seed"));
  CHECK_FALSE(has(same_cost, "ema"));
  CHECK_FALSE(has(same_cost, "batch_size"));
  CHECK(top_keys_with(kTuned) ==
        std::vector<std::string>{"n_data_processes", "n_prefetch", "num_threads", "onednn",
                                 "flush_denormals", "thread_wait", "processes", "precision",
                                 "channels_last", "cudnn_benchmark", "cuda_graph"});
}

TEST_CASE("texts without Markdown") {
  CHECK(plain_about("a `b` [c `d`](../e.md) f") == "a b c d f");
  CHECK(plain_about("`[{match: a}]`; [b](#c)") == "[{match: a}]; b");
  CHECK(plain_about("[a]") == "[a]");
  CHECK(plain_about("[a](b") == "a");
}

/// What is said of a config with `more`; without the name of the file.
std::string said(const std::string& more, bool train) {
  return message_of([&] {
    const Session session(test_config(trainer_config("num_steps: 8\n" + more)), train, false,
                          false);
  });
}

TEST_CASE("a misspelt key below a key of the runtime is found in both modes") {
  for (const auto& [more, meant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"evaluations: {a: {frq: 3}}", "evaluations/a/freq"},
           {"evaluations: {a: {freq: {every: 2, form: 3}}}", "evaluations/a/freq/from"},
           {"eval_hook: {max_batch: 3}", "eval_hook/max_batches"},
           {"eval_filter: {form: 3}", "eval_filter/from"},
           {"freeze: [{match: norm, untill: 3}]", "freeze/0/until"},
           {"log_ops: [{op: train/log_op, wen: 3, when: 2}]", "log_ops/0/when"},
           {"debug: {max_stps: 3}", "debug/max_steps"},
           {"distributed: {time_out: 3m}", "distributed/timeout"},
           {"telemetry: {gradient: 3}", "telemetry/gradients"},
           {"checkpoints: {keep_lst: 3}", "checkpoints/keep_last"},
           {"ema: {decai: 0.9}", "ema/decay"},
           {"integrations: {tensorbord: {active: true}}", "integrations/tensorboard"},
           {"nun_epochs: 3", "num_epochs"},
           {"n_prefetsch: 3", "n_prefetch"}}) {
    CAPTURE(std::string(more));
    for (const bool train : {true, false}) {
      CAPTURE(train);
      CHECK(said(more, train).find(std::string("did you mean \"") + meant + "\"?") !=
            std::string::npos);
    }
  }
}

TEST_CASE("names that a config chooses are not known by being there") {
  for (const char* more : {"integrations: {tensorbord: true}",
                           "eval_pipeline: {callback_kwargs: {acuracy: {logits: x}}}",
                           "eval_hook: {eval_callbacks: {a: accuracy}}\n"
                           "eval_pipeline: {callback_kwargs: {a: {lgits: x}}}"}) {
    CAPTURE(std::string(more));
    for (const bool train : {true, false}) {
      CHECK(said(more, train).find("unknown key") != std::string::npos);
    }
  }
}

TEST_CASE("a misspelt parameter of a component that is not built, and of one in it, is found") {
  // Nothing reads the split `other`.
  std::string config = trainer_config("num_steps: 8\n");
  const std::string own = "datasets:\n";
  config.replace(config.find(own), own.size(),
                 "datasets:\n  other: {class: Subset, range: [0, 2], dataset: {class: Synthetic, "
                 "size: 3, sead: 4}}\n");
  const std::string text =
      message_of([&] { const Session session(test_config(config), true, false, false); });
  CHECK(text.find("unknown key \"datasets/other/dataset/sead\": did you mean "
                  "\"datasets/other/dataset/seed\"?") != std::string::npos);
}

TEST_CASE("a key of the command line that only the other mode reads is reported") {
  const auto config = [](const std::string& yaml) {
    Value value(Value::Map{});
    std::vector<Override> overrides;
    const Value read = parse_yaml(yaml, {Origin::kCommandLine, 0});
    for (const auto& [key, each] : read.as_map()) {
      Value typed = each;
      overrides.push_back({key, typed.set_origin({Origin::kCommandLine, 0})});
    }
    apply_overrides(value, std::move(overrides));
    return Config(std::move(value));
  };
  const auto training = config("num_epochs: 3\ncheckpoints: {keep_last: 3}\nseed: 1");
  CHECK(idle_keys(training, true).empty());
  CHECK(idle_keys(training, false) ==
        std::vector<std::string>{
            "command line: num_epochs: only a training reads this key: add -t",
            "command line: checkpoints: only a training reads this key: add -t"});
  CHECK(idle_keys(config("eval_all: true"), true) ==
        std::vector<std::string>{"command line: eval_all: only an evaluation without a training "
                                 "reads this key: leave out -t"});
  Config mixed(parse_yaml("optimizer: {class: Adam, lr: 0.1}", {"a.yaml", 0}));
  Value below = *mixed.peek();
  apply_overrides(below, {{"optimizer/lr", Value(0.2).set_origin({Origin::kCommandLine, 0})}});
  CHECK(idle_keys(Config(below), false) ==
        std::vector<std::string>{
            "command line: optimizer/lr: only a training reads this key: add -t"});
  // The config of a run has the keys of both.
  CHECK(idle_keys(Config(parse_yaml("num_epochs: 3", {"a.yaml", 0})), false).empty());
}

}  // namespace own_keys_test
}  // namespace stepop
