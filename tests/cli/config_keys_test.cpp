// `stepop config --keys`
#include <doctest/doctest.h>

#include <sstream>

#include "tests/cli/command.h"
#include "tests/places.h"

namespace stepop {
namespace config_keys_test {

TEST_CASE("a text that happens to be a component's name is a text") {
  const ScratchFolder folder;
  const auto result = run_in(
      folder, "stepop config -b '" STEPOP_SOURCE_DIR "/configs/extensible/toy_srgan.yaml' --keys");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out.find("networks/generator/type/") == std::string::npos);
  CHECK(result.out.find("training/out") == std::string::npos);
  // A map with a type is a component: its keys stand beside that.
  CHECK(result.out.find("steps/generator/losses/pix/criterion ") != std::string::npos);
}

TEST_CASE("each key has its type, its value or default, and its meaning") {
  const ScratchFolder folder;
  folder.write("a.yaml",
               "iterator: Classifier\nmodel: {class: LeNet, image_size: [8, 8]}\nbatch_size: 4\n"
               "datasets: {train: {class: Synthetic, size: 8}}\n"
               "optimizer: {class: Adam, lr: {class: cosine, from: 0.1, to: 0.0, steps: 9}}\n"
               "integrations: {csv: {active: true}}\n"
               "eval_hook: {eval_callbacks: {matrix: confusion_matrix}}\n");
  const auto result = run_in(folder, "stepop config -b a.yaml --keys");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  // By path: the rest of the line, its spaces made one.
  std::map<std::string, std::string> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string path, rest, word;
    words >> path;
    while (words >> word) rest += (rest.empty() ? "" : " ") + word;
    CHECK(lines.emplace(path, rest).second);
  }
  CHECK(lines.at("batch_size").starts_with("int 4 in training steps and logs, "));
  CHECK(lines.at("ckpt_freq").starts_with("time (none) further checkpoints"));
  CHECK(lines.at("precision")
            .starts_with("'float32' | 'bfloat16' | 'float16' (float32) of convolutions "));
  CHECK(lines.at("model/class").starts_with("text LeNet "));
  CHECK(lines.at("model/image_size").starts_with("list [8, 8] "));
  CHECK(lines.at("model/classes").starts_with("int (10) "));
  CHECK(lines.at("datasets/train/seed").starts_with("int ("));
  CHECK(lines.at("optimizer/lr/from").starts_with("float 0.1 "));
  CHECK(lines.at("optimizer/weight_decay").starts_with("int (0) "));
  CHECK(lines.at("integrations/csv/active").starts_with("bool true "));
  CHECK(lines.at("eval_hook/eval_callbacks/matrix").starts_with("text confusion_matrix "));
  CHECK(lines.contains("eval_hook/eval_callbacks/matrix/normalize"));
}

TEST_CASE("an iterator's keys have the paths by which they are given") {
  const ScratchFolder folder;
  const auto result =
      run_in(folder, "stepop config -b '" STEPOP_SOURCE_DIR "/configs/pix2pix/base.yaml' --keys");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out.find("\nloss_spec ") != std::string::npos);
  CHECK(result.out.find("\niterator/") == std::string::npos);
}

}  // namespace config_keys_test
}  // namespace stepop
