// What the README says is run as it stands there.
#include <ATen/ops/equal.h>  // before doctest: LibTorch has a CHECK of its own
#include <doctest/doctest.h>

#include "runtime/checkpoint/safetensors.h"
#include "tests/cli/digits_run.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace {

/// The Python blocks of a section of the README.
std::vector<std::string> python_blocks(const std::string& heading) {
  const std::string text = read_bytes(STEPOP_SOURCE_DIR "/README.md");
  const size_t begin = text.find("\n## " + heading + "\n");
  REQUIRE(begin != std::string::npos);
  const std::string section = text.substr(begin, text.find("\n## ", begin + 1) - begin);
  std::vector<std::string> blocks;
  const std::string fence = "```python\n";
  for (size_t at = 0; (at = section.find(fence, at)) != std::string::npos;) {
    at += fence.size();
    blocks.push_back(section.substr(at, section.find("```", at) - at));
  }
  return blocks;
}

TEST_CASE("the README's lines take weights to a PyTorch module, and back into a training") {
  const std::vector<std::string> blocks = python_blocks("Weights to Python and back");
  REQUIRE(blocks.size() == 2);
  for (const auto& block : blocks) CHECK(lines_of(block).size() == 3);
  const std::string call = "load_file(\"";
  const size_t begin = blocks[0].find(call) + call.size();
  const std::string checkpoint = blocks[0].substr(begin, blocks[0].find('"', begin) - begin);

  const std::string yaml = std::string(
      "iterator: Classifier\noptimizer: Adam\n"
      "model: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n"
      "datasets: {train: {class: Synthetic, shape: [1, 8, 8]}}\n"
      "batch_size: 4\nnum_steps: 2\nn_data_processes: 0\n");
  const ScratchFolder folder;
  TestRun run(yaml);
  run.train();
  folder.write(checkpoint, read_bytes(run.checkpoint_path(2)));

  // The module starts with other weights; what it got, and what it then becomes, are kept.
  run_python("import os, sys\nos.chdir(sys.argv[1])\n" +
                 read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/loop/torch_lenet.py") + blocks[0] +
                 "from safetensors.torch import save_model\n"
                 "save_model(model, 'taken.safetensors')\n"
                 "with torch.no_grad():\n"
                 "    for parameter in model.parameters(): parameter.mul_(-3).add_(1)\n"
                 "save_model(model, 'changed.safetensors')\n" +
                 blocks[1],
             {folder.path()});
  const State trained = run.session.context().networks.tensors("model");
  CHECK(differences(load_safetensors(folder / "taken.safetensors").tensors, trained) == "");

  Session back(test_config(yaml + "init_from: " + folder.path("weights.safetensors") + "\n"), true,
               false, false);
  CHECK(back.init_weights() ==
        "model: 10 of 10 tensors from " + folder.path("weights.safetensors"));
  const State changed = load_safetensors(folder / "changed.safetensors").tensors;
  CHECK(differences(back.context().networks.tensors("model"), changed) == "");
  CHECK(differences(changed, trained) != "");
}

}  // namespace
}  // namespace stepop
