// Every mistake gets one message with its place, an exit code, and leaves no run behind.

#include <ATen/detail/CUDAHooksInterface.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/command.h"
#include "tests/places.h"

namespace stepop {
namespace bad_input_test {

/// A folder with the digits' config in it, `digits.yaml`, and their data.
class Digits {
 public:
  Digits() {
    std::filesystem::copy(STEPOP_SOURCE_DIR "/configs", folder_.path(),
                          std::filesystem::copy_options::recursive);
  }

  const ScratchFolder& folder() const { return folder_; }

  /// The config with a line added at its end, as `changed.yaml`; it is the 22nd.
  void add_line(const std::string& line) const {
    folder_.write("changed.yaml", read_bytes(folder_.path("digits.yaml")) + line + "\n");
  }

  /// Checks what a command line answers, and that it left nothing; `@` is the folder.
  void refuses(const std::string& line, int exit_code, std::string message) const {
    for (size_t at = 0; (at = message.find('@')) != std::string::npos;) {
      message.replace(at, 1, folder_.path());
    }
    const CommandResult result = run_in(folder_, line);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    CHECK(only_run(folder_).empty());
  }

 private:
  ScratchFolder folder_;
};

TEST_CASE("a config that cannot be read") {
  const Digits digits;
  digits.folder().write("open.yaml", "a: [1\n");
  digits.refuses("stepop -b open.yaml -t", 2,
                 "open.yaml:2: not valid YAML: a [ is never closed, or a comma is missing");
  digits.refuses("stepop -b none.yaml -t", 2, "cannot read none.yaml: No such file or directory");
  digits.folder().write("twice.yaml", "a: 1\na: 2\n");
  digits.refuses("stepop -b twice.yaml -t", 2,
                 "twice.yaml:2: duplicate key \"a\", first given at twice.yaml:1");
}

TEST_CASE("a key that nobody reads") {
  const Digits digits;
  digits.add_line("test_batch_sise: 3");
  digits.refuses("stepop -b changed.yaml -t", 2,
                 "changed.yaml:22: unknown key \"test_batch_sise\": did you mean "
                 "\"test_batch_size\"?\n(--allow-unknown makes this a warning)");
  digits.refuses("stepop -b digits.yaml -t --model/hiden '[1, 2]'", 2,
                 "command line: unknown key \"model/hiden\": did you mean \"model/hidden\"?\n"
                 "(--allow-unknown makes this a warning)");
}

TEST_CASE("a value of a wrong type or out of its range") {
  const Digits digits;
  digits.add_line("num_threads: many");
  digits.refuses("stepop -b changed.yaml -t", 2,
                 "changed.yaml:22: num_threads: expected a whole number, found \"many\"");
  digits.refuses("stepop -b digits.yaml -t --batch_size 0", 2,
                 "command line: batch_size: expected 1 or more, found 0");
  digits.refuses("stepop -b digits.yaml -t --optimizer/lr fast", 2,
                 "command line: optimizer/lr: expected a number or a schedule (chain, constant, "
                 "cosine, cosine_restarts, exponential, inverse_sqrt, linear, one_cycle, plateau, "
                 "polynomial, power_law, ramp, step, warmup), found \"fast\"");
  digits.refuses("stepop -b digits.yaml -t --num_epochs null", 2,
                 "command line: num_epochs: missing: give num_epochs or num_steps, which says when "
                 "the training ends");
}

TEST_CASE("words that are no command line") {
  const Digits digits;
  digits.refuses("stepop -b digits.yaml -t --batch_size", 2,
                 "--batch_size: no value given; write --batch_size VALUE, for a switch "
                 "--batch_size true");
  digits.refuses("stepop -b digits.yaml -t word", 2,
                 "stray word \"word\"; a key of the config is set by --path/key VALUE, a list of "
                 "values by --path/key '[1, 2]'");
  digits.refuses("stepop -b digits.yaml", 2,
                 "nothing to evaluate: give a run with -p, a checkpoint with -c, or weights with "
                 "--init_from; -t trains");
  digits.refuses("stepop -b digits.yaml -t --num_steps 1 -n " + std::string(300, 'x'), 2,
                 "-n: \"xxxxxxxxxxxxxxxxxxxx...\" has 300 bytes; a name may have 200");
  digits.refuses("stepop -p none", 2,
                 "-p: none: no such folder; give the folder of a run, logs/<time>_<name>");
  digits.refuses("stepop -p digits.yaml -t", 2,
                 "-p: digits.yaml: a config outside of a run's configs/; -b takes configs, -p the "
                 "folder of a run, logs/<time>_<name>");
}

TEST_CASE("a component that is not registered") {
  const Digits digits;
  digits.refuses("stepop -b digits.yaml -t --model LeNte", 2,
                 "command line: model: unknown model \"LeNte\": did you mean \"LeNet\"? Known are: "
                 "LeNet, VUNet, DiT, Onnx, vqvae, MLP, RRDBNet, "
                 "byol, toy_d, toy_g and 14 more: stepop list model");
}

TEST_CASE("a reference to nowhere or in a circle") {
  const Digits digits;
  digits.refuses("stepop -b digits.yaml -t --test_batch_size '{batch_sise}'", 2,
                 "command line: test_batch_size: the reference {batch_sise} leads nowhere: did you "
                 "mean {batch_size}?");
  digits.refuses("stepop -b digits.yaml -t --seed '{num_steps}' --num_steps '{seed}'", 2,
                 "command line: num_steps: the reference {seed} goes in a circle: seed -> "
                 "num_steps -> seed");
}

TEST_CASE("an IDX file that is cut short, of another type, or of another length") {
  const Digits digits;
  const std::string images = "stepop -b digits.yaml -t --datasets/train/images ";
  run_in(digits.folder(), "gunzip -c data/digits-train-images.idx.gz | head -c 1000 > cut.idx");
  digits.refuses(images + "cut.idx", 1,
                 "@/cut.idx: cut short: uint8 [1442, 8, 8] needs 92288 bytes after the header, "
                 "found 984");
  digits.refuses(images + "digits.yaml", 1,
                 "@/digits.yaml: expected an IDX file, which begins with the bytes 00 00, found 23 "
                 "20 4c 65");
  digits.refuses(images + "data/digits-test-images.idx.gz", 1,
                 "@/data/digits-test-images.idx.gz holds 355 images, "
                 "@/data/digits-train-labels.idx.gz holds 1442 labels; each image needs one");
}

TEST_CASE("images that do not decode, folders without images") {
  const Digits digits;
  digits.folder().write("bad/cat/a.png", "text\n");
  digits.refuses(
      "stepop -b digits.yaml -t --datasets/train '{class: ImageFolder, path: bad}'", 1,
      "datasets/train: example 0: @/bad/cat/a.png: expected a PNG, JPEG or WebP, the file "
      "begins with 74 65 78 74");
  std::filesystem::create_directory(digits.folder().path("empty"));
  digits.refuses("stepop -b digits.yaml -t --datasets/train '{class: ImageFolder, path: empty}'", 1,
                 "@/empty: holds no images; they are looked for as CLASS/NAME.png, .jpg or .jpeg "
                 "below it");
}

TEST_CASE("a batch that is larger than the dataset") {
  Digits().refuses("stepop -b digits.yaml -t --drop_last true --batch_size 5000", 1,
                   "datasets/train: drop_last leaves no batch: the dataset has 1,442 examples, a "
                   "batch 5000; choose a batch_size of 1442 or less, or drop_last: false");
}

TEST_CASE("an op that is due and was not returned") {
  Digits().refuses("stepop -b digits.yaml -t --log_ops '[validation/sample_op]'", 2,
                   "command line: log_ops/0: validation/sample_op is due, but step_op of the "
                   "iterator Classifier did not "
                   "return it for the split validation; it returned: train_op, log_op, eval_op\n"
                   "  return it from step_op, or leave it out of log_ops: what train ops return is "
                   "logged without a log op");
}

TEST_CASE("labels that the network has no output for") {
  Digits().refuses("stepop -b digits.yaml -t --model/classes 5 --samplers/train sequential", 1,
                   "train/step_op: \"class\" of the example 5 is 5: the network has 5 outputs, "
                   "classes 0 to 4");
}

TEST_CASE("a device that is not there") {
  const bool has_cuda = at::CUDAHooksRegistry()->Has("CUDAHooks");
  Digits().refuses("stepop -b digits.yaml -t --device cuda:77", 2,
                   has_cuda
                       ? "command line: device: \"cuda:77\" is not available: LibTorch has CUDA "
                         "and finds no GPU with a driver (nvidia-smi lists these); use cpu or "
                         "auto"
                       : "command line: device: \"cuda:77\" is not available: this LibTorch has "
                         "no CUDA; use cpu or auto");
  Digits().refuses(
      "stepop -b digits.yaml -t --device tpu", 2,
      "command line: device: expected auto, cpu, cuda or cuda:<number>, found \"tpu\"");
}

TEST_CASE("a backend of messages between processes that is not there") {
  Digits().refuses("stepop -b digits.yaml -t --distributed/backend mpi", 2,
                   "command line: distributed/backend: expected gloo or nccl, found \"mpi\"");
}

TEST_CASE("a run folder that cannot be written") {
  const Digits digits;
  digits.folder().write("logs", "a file");
  const CommandResult result = run_in(digits.folder(), "stepop -b digits.yaml -t");
  CHECK(result.err == "stepop: cannot make the folder logs: a file of that name is there\n");
  CHECK(result.exit_code == 1);
  CHECK(read_bytes(digits.folder().path("logs")) == "a file");
}

TEST_CASE("a checkpoint of another architecture, or one that is not there") {
  const Digits digits;
  REQUIRE(run_in(digits.folder(), "stepop -n a -b digits.yaml -t --num_steps 1").exit_code == 0);
  const std::string run = only_run(digits.folder());
  CommandResult result = run_in(digits.folder(), "stepop -p " + run + " --model/hidden '[30, 84]'");
  CHECK(
      result.err ==
      "stepop: " + run +
          "/train/checkpoints/model-1.safetensors: the checkpoint has another "
          "architecture than the network \"model\":\n"
          "  model.fc1.bias: [120] in the checkpoint, [30] in the network\n"
          "  model.fc1.weight: [120, 64] in the checkpoint, [30, 64] in the network\n"
          "  model.fc2.weight: [84, 120] in the checkpoint, [84, 30] in the network\n"
          "Give the config that it was trained with; or start a new run with the weights that fit: "
          "init_from with strict: false\n");
  CHECK(result.exit_code == 1);
  result = run_in(digits.folder(), "stepop -p " + run + " -c 7");
  CHECK(result.err == "stepop: -c: " + run +
                          "/train/checkpoints/model-7.safetensors: no such checkpoint; there are "
                          "checkpoints of the steps 1\n");
  CHECK(result.exit_code == 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need far more memory
TEST_CASE("with too little memory to begin, the program says so") {
  const ScratchFolder folder;
  for (int kilobytes = 300'000; kilobytes <= 700'000; kilobytes += 20'000) {
    CAPTURE(kilobytes);
    const CommandResult result =
        run_in(folder, "(ulimit -v " + std::to_string(kilobytes) + "; stepop list >/dev/null)");
    CAPTURE(result.err);
    CHECK(result.err.find("terminate called") == std::string::npos);
    CHECK(result.err.empty() == (result.exit_code == 0));
    const bool is_of_malloc = result.err.find("FATAL ERROR: Out of memory") != std::string::npos;
    CHECK((result.exit_code < 128 || is_of_malloc));  // tcmalloc says so and aborts
  }
}
#endif

}  // namespace bad_input_test
}  // namespace stepop
