// What follows a training, and what goes before it, on the device: exports, samples, weights of
// another run, `stepop tune`, steps as graphs of the tree's configs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "runtime/train/step/device_graph.h"
#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/with_device.h"
#include "tests/same_state.h"

namespace stepop::accelerator {
namespace tools_test {

CommandResult well(const ScratchFolder& folder, const std::string& line) {
  const CommandResult result = run_in(folder, kWithDevice + line);
  CAPTURE(line);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return result;
}

/// An epoch of the digits, in a folder of the device's name.
void train_digits(const ScratchFolder& folder, const std::string& device) {
  well(folder, fmt::format("stepop -n a -b '{}' -t --num_epochs 1 --device {} --logs {}", kConfig,
                           device, device));
}

/// What is said of the validation split.
std::string numbers_of(const std::string& out) {
  const size_t at = out.find("validation/eval_op: ");
  return at == std::string::npos ? "" : out.substr(at, out.find('\n', at) - at);
}

TEST_CASE("a run of the device is exported to the bytes of one of the CPU") {
  const ScratchFolder folder;
  for (const char* device : {kName, "cpu"}) {
    train_digits(folder, device);
    for (const char* kind : {"pt", "pt2", "onnx"}) {
      well(folder, fmt::format("stepop export {0}/* -o {0}.{1}", device, kind));
    }
  }
  for (const char* kind : {"pt2", "onnx"}) {
    CAPTURE(std::string(kind));
    CHECK(read_bytes(folder.path(fmt::format("hpu.{}", kind))) ==
          read_bytes(folder.path(fmt::format("cpu.{}", kind))));
  }
}

TEST_CASE("weights go from the CPU to the device and back, and are evaluated there") {
  const ScratchFolder folder;
  train_digits(folder, "cpu");
  train_digits(folder, kName);
  const auto begin_with = [&](const std::string& from, const std::string& device,
                              const std::string& logs) {
    return fmt::format(
        "stepop -n b -b '{}' -t --num_epochs 1 --device {} --logs {} --init_from "
        "\"$(ls {}/*/train/checkpoints/latest.safetensors)\"",
        kConfig, device, logs, from);
  };
  well(folder, begin_with("cpu", kName, "there"));
  well(folder, begin_with("cpu", "cpu", "here"));
  well(folder, begin_with(kName, "cpu", "back"));
  CHECK(differences(last_checkpoint(folder, "there"), last_checkpoint(folder, "here")) == "");
  CHECK(differences(last_checkpoint(folder, "back"), last_checkpoint(folder, "here")) == "");
  const std::string here = numbers_of(well(folder, "stepop -p cpu/*").out);
  CHECK(here.size() > 20);
  CHECK(numbers_of(well(folder, "stepop -p cpu/* --device hpu").out) == here);
}

TEST_CASE("averages of weights are evaluated and saved as on the CPU") {
  for (const char* more : {"--swa '{from: 2, every: 2}' --eval_weights swa --accumulate 2",
                           "--checkpoint_modules . --eval_weights ema --ema '{decay: 0.9}'"}) {
    CAPTURE(std::string(more));
    const ScratchFolder folder;
    for (const char* device : {kName, "cpu"}) {
      well(folder, fmt::format("cd '" STEPOP_SOURCE_DIR
                               "/configs'; stepop -n a -b pix2pix/base.yaml pix2pix/small.yaml -t "
                               "-d --debug/max_steps 4 --device {0} --logs '{1}/{0}' {2}",
                               device, folder.path(), more));
    }
    CHECK(differences(last_checkpoint(folder, "hpu/debug_runs"),
                      last_checkpoint(folder, "cpu/debug_runs")) == "");
  }
}

TEST_CASE("samples of a flow and of a language model are made on the device") {
  const ScratchFolder folder;
  well(folder, "cd '" STEPOP_SOURCE_DIR
               "/configs'; stepop -n a -b trainer/flow_digits.yaml -t -d "
               "--device hpu --logs '" +
                   folder.path() + "/flow'");
  well(folder,
       "stepop -p flow/debug_runs/* --eval_functor Generate -n made --debug/max_examples 8 -d");
  well(folder,
       "stepop new lm --template language_model; cd lm; stepop -n a -b lm.yaml -t -d "
       "--device hpu --sample_length 20 --log_freq 2");
  CHECK(run_in(folder, "ls lm/logs/debug_runs/*/train/validation/log_op/*").out.find("sample") !=
        std::string::npos);
}

TEST_CASE("tune measures steps of the device") {
  const ScratchFolder folder;
  const auto tuned =
      well(folder, fmt::format("stepop tune -b '{}' --device hpu --time 8s", kConfig));
  CHECK(tuned.out.find("steps") != std::string::npos);
  CHECK(!read_bytes(folder.path("tuned.yaml")).empty());
}

TEST_CASE("steps of the tree's configs have the same bits as graphs, profiled too") {
  if (make_device_graph(c10::kHPU) == nullptr) return;  // before LibTorch 2.13
  for (const char* config : {"digits.yaml", "trainer/flow_digits.yaml"}) {
    CAPTURE(std::string(config));
    const ScratchFolder folder;
    for (const char* graph : {"true", "false"}) {
      well(folder, fmt::format("unset {}; cd '" STEPOP_SOURCE_DIR
                               "/configs'; stepop -n a -b {} -t -d --debug/max_steps 6 --device "
                               "hpu --profile --logs '{}/{}' --cuda_graph {}",
                               kSharesRandom, config, folder.path(), graph, graph));
    }
    CHECK(differences(last_checkpoint(folder, "true/debug_runs"),
                      last_checkpoint(folder, "false/debug_runs")) == "");
  }
}

}  // namespace tools_test
}  // namespace stepop::accelerator
