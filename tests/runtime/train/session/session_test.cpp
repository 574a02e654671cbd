#include "runtime/train/session/session.h"

#include <ATen/ops/equal.h>  // before doctest: LibTorch has a CHECK of its own
#include <doctest/doctest.h>

#include "runtime/core/formats/safetensors.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace session_test {

std::string config_of(int size, const std::string& more = "") {
  return "iterator: Classifier\nmodel: {class: MLP, inputs: 4}\noptimizer: SGD\n"
         "datasets: {train: {class: Synthetic, shape: [1, 2, 2], size: " +
         std::to_string(size) + "}}\nbatch_size: 4\nnum_epochs: 1\nn_data_processes: 0\n" + more;
}

TEST_CASE("a resume on a training dataset of another size is refused") {
  TestRun run(config_of(1442));
  run.train();
  const std::string path = run.checkpoint_path(361);
  CHECK(load_checkpoint(path).progress.train_examples == 1442);
  CHECK(message_of([&] { TestRun(config_of(1440), run, 361); }) ==
        path +
            ": taken from a training on 1,442 examples; datasets/train now has 1,440. Resume with "
            "the same data, or begin anew with these weights: -r");
  CHECK(message_of([&] { TestRun(config_of(1442), run, 361); }) == "no error");

  // What a checkpoint does not tell is not asked of it; the next one tells it.
  Checkpoint old = load_checkpoint(path);
  old.progress.train_examples = 0;
  Session session(test_config(config_of(1440)), true, false, false);
  session.resume(old, "old");
  CHECK(session.position().train_examples == 1440);
  // Other data may follow for the same weights.
  session.restore_weights(load_checkpoint(path), path);
}

TEST_CASE("another architecture is refused with each tensor that differs, up to ten") {
  TestRun run(config_of(8));
  run.train();
  Checkpoint checkpoint = load_checkpoint(run.checkpoint_path(2));
  const std::string help =
      "\nGive the config that it was trained with; or start a new run with the weights that fit: "
      "init_from with strict: false";
  Session session(test_config(config_of(8)), true, false, false);
  const auto refused = [&] { return message_of([&] { session.resume(checkpoint, "a"); }); };
  const std::string begin =
      "a: the checkpoint has another architecture than the network \"model\":";
  checkpoint.tensors["model.layers.0.weight"] =
      at::Tensor(checkpoint.tensors["model.layers.1.weight"]);
  checkpoint.tensors.erase("model.layers.1.bias");
  checkpoint.tensors["model.head"] = checkpoint.tensors["model.layers.1.weight"];
  CHECK(refused() == begin +
                         "\n  model.layers.0.weight: [10, 128] in the checkpoint, [128, 4] in the "
                         "network"
                         "\n  model.layers.1.bias: missing from the checkpoint"
                         "\n  model.head: in the checkpoint only" +
                         help);
  for (int i = 0; i < 9; ++i) {
    checkpoint.tensors["model.head" + std::to_string(i)] = checkpoint.tensors["model.head"];
  }
  CHECK(refused().ends_with("\n  model.head6: in the checkpoint only\n  and 2 more" + help));
}

TEST_CASE("weights and moments of another type are refused, not rounded") {
  TestRun run(config_of(8));
  run.train();
  Checkpoint checkpoint = load_checkpoint(run.checkpoint_path(2));
  Session session(test_config(config_of(8)), true, false, false);
  const auto refused = [&](const std::string& name) {
    Checkpoint other = checkpoint;
    other.tensors[name] = other.tensors[name].to(at::kDouble);
    return message_of([&] { session.resume(other, "a"); });
  };
  CHECK(refused("model.layers.1.bias")
            .find("\n  model.layers.1.bias: float64 [10] in the checkpoint, float32 [10] in the "
                  "network\n") != std::string::npos);
  CHECK(refused("optimizer.layers.1.bias.step") ==
        "a: the state does not fit the optimizer:\n  \"layers.1.bias.step\" is float64 [], "
        "expected float32 []\nGive the config that it was trained with; or start a new run with "
        "these weights: -r");
}

TEST_CASE("init_from is read in every mode, and a resume has the checkpoint's weights") {
  TestRun run(config_of(8));
  run.train();
  const std::string missing = "init_from: /none/weights.safetensors\n";
  Session evaluation(test_config(config_of(8, missing)), /*train=*/false, false, false);
  Session resumed(test_config(config_of(8, missing)), true, false, false);
  resumed.resume(load_checkpoint(run.checkpoint_path(2)), "a");
  CHECK(differences(resumed.context().networks.tensors("model"),
                    run.session.context().networks.tensors("model")) == "");
}

TEST_CASE("fixed examples that cannot be are refused, also where no op asks for them") {
  const auto refused = [](const std::string& fixed) {
    return message_of([&] {
      Session(test_config(config_of(8, "fixed_example_indices: " + fixed)), true, false, false);
    });
  };
  const std::string place = "test.yaml:8: fixed_example_indices";
  CHECK(refused("{train: [0, 7]}") == "no error");
  CHECK(refused("{train: [0, 8]}") == place + "/train/1: no example 8: the dataset has 8");
  CHECK(refused("{train: [-1]}") == place + "/train/0: expected 0 or more, found -1");
  CHECK(refused("{validation: [0]}") ==
        place + "/validation: there is no datasets/validation; there are: train");
  CHECK(refused("[0, 1]") ==
        place + ": expected a map of splits, such as {validation: [0, 1, 2]}, found [0, 1]");
}

TEST_CASE("data under another name than validation are warned of, where there are no others") {
  const auto warned = [](const std::string& name, const std::string& more = "") {
    std::string config = config_of(8);
    const std::string split = ", " + name + ": {class: Synthetic, shape: [1, 2, 2], size: 8}";
    config.insert(config.find("}}\n") + 1, split + more);
    return Session(test_config(config), true, false, false).warnings();
  };
  CHECK(warned("val").find("test.yaml:4: datasets/val: nothing uses it by itself: the data of "
                           "evaluations are datasets/validation") != std::string::npos);
  CHECK(warned("test").find("nothing uses it by itself") == std::string::npos);
  CHECK(warned("val", ", validation: {class: Synthetic, shape: [1, 2, 2], size: 8}")
            .find("nothing uses it by itself") == std::string::npos);
}

TEST_CASE("a misspelt key is reported in the mode that does not use it") {
  const auto refused = [](const std::string& more, bool train = false) {
    const std::string text = message_of(
        [&] { Session(test_config(config_of(8, more)), train, /*debug=*/false, false); });
    return text.substr(0, text.find(':', text.find('"')));
  };
  CHECK(refused("freeze: [{match: bias, until: 5}]\nevaluations: {a: {eval_op: train/eval_op}}") ==
        "no error");
  CHECK(refused("freeze: [{match: bias, untill: 5}]") ==
        "test.yaml:8: unknown key \"freeze/0/untill\"");
  CHECK(refused("eval_functor: Predict\nevaluations: {a: {eval_op: train/eval_op, frq: 1}}") ==
        "test.yaml:9: unknown key \"evaluations/a/frq\"");
  CHECK(refused("eval_functor: {class: Predict, inputt: a}", /*train=*/true) ==
        "test.yaml:8: unknown key \"eval_functor/inputt\"");
}

}  // namespace session_test
}  // namespace stepop
