// The program itself on the device: the configs of the tree, a kill, a resume, two processes, an
// evaluation, memory that runs out.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/with_device.h"
#include "tests/cli/digits_run.h"
#include "tests/same_state.h"

namespace stepop::accelerator {
namespace command_test {

#ifdef STEPOP_ACCELERATOR_MESSAGES
/// The same, and messages between the devices of processes.
const std::string kWithMessages = [] {
  const std::string device = "/tests/libstepop_accelerator.so";
  std::string text = kWithDevice;
  return text.insert(text.find(device) + device.size(),
                     ":" STEPOP_BINARY_DIR "/tests/libstepop_accelerator_messages.so");
}();
#endif

/// A line that trains two processes on the device whose name is put behind it: with halves of the
/// optimizer's state, metrics and averages.
std::string training_of_two(const ScratchFolder& folder) {
  folder.write("more.yaml",
               "model: {hidden: [512, 512]}\ndistributed: {shard_optimizer: true}\n"
               "metrics: {f1: F1}\nema: {decay: 0.9}\n");
  return std::string("stepop -n a -b '") + kConfig +
         "' more.yaml -t --num_epochs 3 --ckpt_freq 10 --processes 2 --device ";
}

/// Whether each of two processes had a generator of the device, and so the device.
bool were_on_devices(const ScratchFolder& folder, const std::string& logs) {
  const std::string checkpoints = folder.path(only_run(folder, logs)) + "/train/checkpoints";
  const State state = load_checkpoint(checkpoints + "/latest.safetensors").tensors;
  return state.contains("random.cuda") && state.contains("rank_1/random.cuda");
}

/// Four steps of a config of the tree, in the folder of its own of that device.
void train(const ScratchFolder& folder, const std::string& configs, const std::string& device,
           const std::string& more = "") {
  const auto result = run_in(
      folder, kWithDevice + fmt::format("cd " STEPOP_SOURCE_DIR "/configs; stepop -n a -b {} -t -d "
                                        "--debug/max_steps 4 --device {} --logs '{}/{}' {}",
                                        configs, device, folder.path(), device, more));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
}

TEST_CASE("steps of the configs of the tree have the bits of the CPU") {
  for (const char* configs : {"pix2pix/base.yaml pix2pix/small.yaml",
                              "vunet/base.yaml vunet/small.yaml", "extensible/sr.yaml"}) {
    CAPTURE(std::string(configs));
    const ScratchFolder folder;
    train(folder, configs, kName);
    train(folder, configs, "cpu");
    CHECK(differences(last_checkpoint(folder, "hpu/debug_runs"),
                      last_checkpoint(folder, "cpu/debug_runs")) == "");
  }
}

TEST_CASE("where LibTorch takes other kernels for a device, losses differ by rounding alone") {
  for (const char* configs : {"trainer/flow_digits.yaml", "trainer/adversarial_vae.yaml",
                              "extensible/diffusion.yaml --batch_size 4"}) {
    CAPTURE(std::string(configs));
    const ScratchFolder folder;
    const auto last_log = [&](const std::string& device) {
      train(folder, configs, device);
      const std::string run = only_run(folder, device + "/debug_runs");
      return nlohmann::json::parse(
          lines_of(read_bytes(folder.path(run) + "/train/metrics.jsonl")).back());
    };
    const auto here = last_log(kName);
    const auto there = last_log("cpu");
    int compared = 0;
    for (const auto& [name, value] : there.items()) {
      if (name.find("_op/") == std::string::npos || !value.is_number()) continue;
      CAPTURE(name);
      CHECK(here[name].get<double>() == doctest::Approx(value.get<double>()).epsilon(1e-3));
      ++compared;
    }
    CHECK(compared > 0);
  }
}

TEST_CASE("a killed training resumes to the bits of one that was never killed") {
  const ScratchFolder folder;
  const std::string train = std::string("stepop -n a -b '") + kConfig + "' -t --device hpu ";
  const auto whole = run_in(folder, kWithDevice + train + "--logs whole --num_epochs 3");
  CAPTURE(whole.err);
  REQUIRE(whole.exit_code == 0);
  const auto killed = run_in(
      folder, kWithDevice + kUntil + train +
                  "--logs logs --num_epochs 3 --ckpt_freq 10 >/dev/null & "
                  "until_ok 'ls logs/*/train/checkpoints/model-30.safetensors'; pkill -9 -P $!; "
                  "wait $! 2>/dev/null; stepop -p logs/* -t");
  CAPTURE(killed.err);
  REQUIRE(killed.exit_code == 0);
  CHECK(differences(last_checkpoint(folder, "whole"), last_checkpoint(folder, "logs")) == "");
}

TEST_CASE("two processes on devices have the bits of two on CPUs, also after a kill") {
  const ScratchFolder folder;
  // Gradients of more than one message, halves of the optimizer's state, sums of metrics.
  const std::string train = training_of_two(folder);
  for (const char* device : {"cpu", kName}) {
    const auto result = run_in(folder, kWithDevice + train + device + " --logs " + device);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
  }
  CHECK(were_on_devices(folder, kName));
  CHECK(differences(last_checkpoint(folder, kName), last_checkpoint(folder, "cpu")) == "");
  const auto killed = run_in(
      folder, kWithDevice + kUntil + train + kName +
                  " --logs killed >/dev/null 2>&1 & "
                  "until_ok 'ls killed/*/train/checkpoints/model-30.safetensors'; pkill -9 -P $!; "
                  "wait $! 2>/dev/null; stepop -p killed/* -t");
  CAPTURE(killed.err);
  REQUIRE(killed.exit_code == 0);
  CHECK(differences(last_checkpoint(folder, "killed"), last_checkpoint(folder, kName)) == "");
}

#ifdef STEPOP_ACCELERATOR_MESSAGES
TEST_CASE("two connected devices have the bits of two CPUs, also after a kill, which is reported") {
  const ScratchFolder folder;
  const std::string train = training_of_two(folder);
  const std::string connected = std::string(kName) + " --distributed/backend messages --logs ";
  const auto on_cpus = run_in(folder, kWithDevice + train + "cpu --logs cpu");
  REQUIRE(on_cpus.exit_code == 0);
  const auto on_devices = run_in(folder, kWithMessages + train + connected + kName);
  CAPTURE(on_devices.err);
  REQUIRE(on_devices.exit_code == 0);
  CHECK(were_on_devices(folder, kName));
  CHECK(differences(last_checkpoint(folder, kName), last_checkpoint(folder, "cpu")) == "");
  // The launcher's last child is rank 1.
  const auto killed = run_in(
      folder, kWithMessages + kUntil + train + connected +
                  "killed >/dev/null & parent=$!; "
                  "until_ok 'ls killed/*/train/checkpoints/model-30.safetensors'; "
                  "launcher=$(pgrep -P $parent | head -1); "
                  "kill -KILL $(pgrep -P ${launcher:-$parent} | sort -n | tail -1); wait $parent; "
                  "stepop -p killed/* -t > resumed.txt");
  CAPTURE(killed.err);
  CHECK(killed.err.find("rank 1 on ") != std::string::npos);
  CHECK(killed.err.find("is gone: it was killed, or the network failed") != std::string::npos);
  REQUIRE(killed.exit_code == 0);
  CHECK(differences(last_checkpoint(folder, "killed"), last_checkpoint(folder, kName)) == "");
}
#endif

TEST_CASE("batches are normalized over two devices as over two CPUs") {
  const ScratchFolder folder;
  for (const char* device : {"cpu", kName}) {
    train(folder, "extensible/toy_srgan.yaml", device,
          "--processes 2 --distributed/sync_batch_norm true");
  }
  CHECK(were_on_devices(folder, "hpu/debug_runs"));
  CHECK(differences(last_checkpoint(folder, "hpu/debug_runs"),
                    last_checkpoint(folder, "cpu/debug_runs")) == "");
}

TEST_CASE("--check and a profile run on the device, and an evaluation has the CPU's numbers") {
  const ScratchFolder folder;
  const std::string train = std::string("stepop -n a -b '") + kConfig + "' -t --num_epochs 1 ";
  const auto checked = run_in(folder, kWithDevice + train + "--device hpu --check");
  CAPTURE(checked.err);
  CHECK(checked.exit_code == 0);
  const auto profiled = run_in(folder, kWithDevice + train + "--device hpu --profile");
  CAPTURE(profiled.err);
  CHECK(profiled.exit_code == 0);
  const auto evaluated = [&](const std::string& device) {
    const auto result = run_in(folder, kWithDevice + "stepop -p logs/* --device " + device);
    CHECK(result.exit_code == 0);
    const size_t at = result.out.find("validation/eval_op: ");
    return result.out.substr(at, result.out.find('\n', at) - at);
  };
  CHECK(evaluated(kName).size() > 20);
  CHECK(evaluated(kName) == evaluated("cpu"));
}

TEST_CASE("--check of an iterator that keeps what is not tracked ends with status 3 here too") {
  const ScratchFolder folder;
  folder.write("a.yaml",
               "iterator: QuietIterator\nmodel: {class: MLP, inputs: 4}\noptimizer: SGD\n"
               "datasets: {train: {class: Synthetic, size: 64, shape: [1, 2, 2]}}\n"
               "batch_size: 8\nnum_steps: 8\ndevice: hpu\n");
  const std::string check =
      "LD_PRELOAD=" STEPOP_BINARY_DIR "/tests/libstepop_accelerator.so '" STEPOP_BINARY_DIR
      "/stepop_slow' -b a.yaml -t --check --forgets ";
  CHECK(run_in(folder, check + "false").exit_code == 0);
  CHECK(run_in(folder, check + "true").exit_code == 3);
}

TEST_CASE("a batch that does not fit into the memory of the device is trained in parts") {
  const ScratchFolder folder;
  const std::string train = std::string("stepop -n a -b '") + kConfig +
                            "' -t --device hpu --num_epochs 1 --batch_size 512 --log_freq 1 ";
  const auto last = [&](const std::string& logs) {
    const auto lines =
        lines_of(read_bytes(folder.path(only_run(folder, logs)) + "/train/metrics.jsonl"));
    return std::pair{nlohmann::json::parse(lines[lines.size() - 2]),
                     nlohmann::json::parse(lines.back())};
  };
  const auto whole = run_in(folder, kWithDevice + train + "--logs whole");
  CAPTURE(whole.err);
  REQUIRE(whole.exit_code == 0);
  const auto [log, evaluation] = last("whole");
  const auto most = static_cast<int64_t>(1e6 * log["runtime/device_peak_mb"].get<double>());
  const std::string limit = fmt::format("export {}={}; ", kByteLimit, most * 3 / 4);
  const auto failed = run_in(folder, kWithDevice + limit + train + "--logs failed");
  CHECK(failed.exit_code != 0);
  CHECK(failed.err.find("out of memory") != std::string::npos);
  CHECK(failed.err.find("what would help: --on_out_of_memory split") != std::string::npos);
  const auto split =
      run_in(folder, kWithDevice + limit + train + "--logs split --on_out_of_memory split");
  CAPTURE(split.err);
  REQUIRE(split.exit_code == 0);
  CHECK(split.err.find("2 parts") != std::string::npos);
  CHECK(last("split").second["validation/eval_op/loss"].get<double>() ==
        doctest::Approx(evaluation["validation/eval_op/loss"].get<double>()).epsilon(1e-4));
}

}  // namespace command_test
}  // namespace stepop::accelerator
