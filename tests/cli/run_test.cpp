// The real binary from the shell, on the digits that ship with the tree.

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/config/config.h"
#include "runtime/config/yaml_reader.h"
#include "tests/cli/command.h"
#include "tests/python.h"
#include "tests/same_state.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = STEPOP_SOURCE_DIR "/configs/digits.yaml";

/// Runs a line that must end well; `CONFIG` in it is the digits' config.
CommandResult run_well(const ScratchFolder& folder, std::string line) {
  for (size_t at = 0; (at = line.find("CONFIG")) != std::string::npos;) {
    line.replace(at, 6, kConfig);
  }
  CAPTURE(line);
  // Threads that wait for each other are slow when several tests share the cores.
  const CommandResult result = run_in(folder, "export OMP_NUM_THREADS=1; " + line);
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  return result;
}

/// The tensors of a checkpoint of the only run in `folder`.
State state_after(const ScratchFolder& folder, int64_t step) {
  return load_checkpoint(folder.path(only_run(folder)) + "/train/checkpoints/" +
                         checkpoint_name(step))
      .tensors;
}

/// What a training of two epochs of 23 steps ends with.
State trained(const std::string& more) {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 46 " + more);
  return state_after(folder, 46);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
  });
}

/// Files below `folder` by their paths in it, sorted.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// One whole training with the config as it ships, for the tests that look at what it leaves.
struct WholeRun {
  WholeRun() {
    result = run_well(folder, "stepop -n digits -b CONFIG -t");
    root = folder.path(only_run(folder));
    for (const auto& line : lines_of(read_bytes(root + "/train/metrics.jsonl"))) {
      metrics.push_back(nlohmann::json::parse(line));
    }
    const fs::path evaluations = *fs::directory_iterator(root + "/eval");
    outputs = (evaluations / "460" / "outputs.h5").string();
    checkpoint = root + "/train/checkpoints/model-460.safetensors";
  }

  ScratchFolder folder;
  CommandResult result;
  std::string root, outputs, checkpoint;
  std::vector<nlohmann::json> metrics;
};

const WholeRun& whole_run() {
  static const WholeRun run;
  return run;
}

TEST_CASE("the digits reach 97 %") {
  const auto& last = whole_run().metrics.back();
  CHECK(last["step"] == 460);
  CHECK(last["validation/eval_op/accuracy/accuracy"] >= 0.97);
  CHECK(last["validation/eval_op/loss"] < 0.15);
}

TEST_CASE("a line of the metrics is JSON with its place and full names") {
  for (const auto& line : whole_run().metrics) {
    for (const char* key : {"step", "epoch", "samples", "time"}) CHECK(line[key].is_number());
    CHECK(line.size() > 4);
  }
  const auto& first = whole_run().metrics.front();
  std::vector<std::string> keys;
  for (const auto& [key, value] : first.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>({"epoch", "samples", "step", "time",
                                          "train/log_op/accuracy", "train/log_op/loss",
                                          "validation/log_op/accuracy", "validation/log_op/loss"}));
  CHECK(first["step"] == 1);
  CHECK(first["samples"] == 64);
  CHECK(whole_run().metrics.back()["samples"] == 20 * 1442);
}

TEST_CASE("neither a pipe nor a log file holds a control character") {
  CHECK_FALSE(has_control_characters(whole_run().result.out));
  const std::string log = read_bytes(whole_run().root + "/train/log.txt");
  CHECK_FALSE(has_control_characters(log));
  for (const std::string part :
       {"command   stepop -n digits -b ", "run       logs/", "device    cpu, 1 thread, oneDNN",
        "seed      1", "git       ", "process   ", "network   model: LeNet, 21,386 parameters",
        "step 460  validation/eval_op: loss ", "iterator: Classifier",
        "ended: all 460 steps are done"}) {
    CAPTURE(part);
    CHECK(log.find(part) != std::string::npos);
    CHECK(whole_run().result.out.find(part) != std::string::npos);
  }
}

TEST_CASE("a terminal shows a progress bar, which the log file does not have") {
  const ScratchFolder folder;
  const std::string screen =
      run_python(R"(
import os, pty, sys
os.chdir(sys.argv[1])
os.environ.update(TERM='xterm', OMP_NUM_THREADS='1')
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:])))
)",
                 {folder.path(), STEPOP_BINARY_DIR "/stepop", "-n", "a", "-b", kConfig, "-t"});
  CHECK(screen.find("━") != std::string::npos);
  CHECK(screen.find("\x1b[K") != std::string::npos);
  CHECK(screen.find("epoch ") != std::string::npos);
  CHECK(screen.find("/460") != std::string::npos);
  const std::string log = read_bytes(folder.path(only_run(folder)) + "/train/log.txt");
  CHECK_FALSE(has_control_characters(log));
  CHECK(log.find("━") == std::string::npos);
  CHECK(log.find("train/log_op: loss") != std::string::npos);
}

TEST_CASE("images are written for each log, as PNG that others open") {
  const std::string images = whole_run().root + "/train/";
  CHECK(fs::exists(images + "train/log_op/input_0000001.png"));
  CHECK(fs::exists(images + "validation/log_op/input_0000001.png"));
  CHECK(run_python(R"(
import sys
from PIL import Image
image = Image.open(sys.argv[1])
image.load()
print(image.format, image.size, image.mode)
)",
                   {images + "train/log_op/input_0000001.png"}) == "PNG (64, 64) L\n");
}

TEST_CASE("the outputs open in h5py: every example once, in the dataset's order") {
  CHECK(run_python(R"(
import sys
import h5py, numpy
f = h5py.File(sys.argv[1])
print(f['outputs/logits'].shape, f['outputs/logits'].dtype, f['labels/loss'].shape)
print((f['index'][:] == numpy.arange(355)).all())
print(bool(f.attrs['complete']), int(f.attrs['rows']), int(f.attrs['global_step']))
text = lambda v: v.decode() if isinstance(v, bytes) else v
print(text(f.attrs['split']), text(f.attrs['iterator']), text(f.attrs['model']))
print('class: LeNet' in text(f.attrs['config']))
accuracy = (f['outputs/logits'][:].argmax(1) == f['outputs/class'][:]).mean()
print(abs(accuracy - float(sys.argv[2])) < 1e-6)
print(abs(f['labels/loss'][:].astype('f8').mean() - float(sys.argv[3])) < 1e-9)
)",
                   {whole_run().outputs,
                    whole_run().metrics.back()["validation/eval_op/accuracy/accuracy"].dump(),
                    whole_run().metrics.back()["validation/eval_op/loss"].dump()}) ==
        "(355, 10) float32 (355,)\nTrue\nTrue 355 460\nvalidation Classifier LeNet\nTrue\nTrue\n"
        "True\n");
}

TEST_CASE(
    "a PyTorch module of the same layout, loaded from the checkpoint, gives the same logits") {
  CHECK(run_python(R"(
import gzip, sys
import h5py, numpy, torch
from safetensors.torch import load_file

class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(6, 16, 5, padding=2)
        self.fc1 = torch.nn.Linear(64, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, 10)
    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))

model = LeNet()
tensors = load_file(sys.argv[1])
model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith('model.')})
pixels = numpy.frombuffer(gzip.open(sys.argv[3]).read(), 'u1', offset=16).reshape(-1, 1, 8, 8)
images = torch.tensor(pixels.astype('f4') / 127.5 - 1)
logits = model(images).detach().numpy()
print(abs(logits - h5py.File(sys.argv[2])['outputs/logits'][:]).max() < 1e-5)
)",
                   {whole_run().checkpoint, whole_run().outputs,
                    STEPOP_SOURCE_DIR "/configs/data/digits-test-images.idx.gz"}) == "True\n");
}

TEST_CASE("the line that says how to load the outputs works as it stands") {
  const std::string& out = whole_run().result.out;
  const size_t begin = out.find("python -c ");
  REQUIRE(begin != std::string::npos);
  const std::string line = out.substr(begin, out.find('\n', begin) - begin);
  const CommandResult result = run_in(whole_run().folder, STEPOP_SOURCE_DIR "/.venv/bin/" + line);
  CHECK(result.err == "");
  CHECK(result.out == "(355, 10)\n");
}

TEST_CASE(
    "the same seed gives the same bits, with 0, 1 and 4 loader workers; another seed others") {
  const State none = trained("--n_data_processes 0");
  CHECK(differences(trained("--n_data_processes 1"), none) == "");
  CHECK(differences(trained("--n_data_processes 4"), none) == "");
  CHECK(differences(trained("--log_freq 1 --ckpt_freq 7"), none) == "");
  CHECK(differences(trained("--seed 2"), none).find("model.conv1.weight") != std::string::npos);
}

TEST_CASE("a run that stopped in the middle of an epoch goes on with the same bits") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 30");
  const std::string run = only_run(folder);
  const CommandResult result = run_well(folder, "stepop -p " + run + " -t --num_steps 46");
  CHECK(result.out.find("resuming from " + run +
                        "/train/checkpoints/model-30.safetensors (step "
                        "30)") != std::string::npos);
  CHECK(only_run(folder) == run);
  CHECK(differences(state_after(folder, 46), trained("")) == "");
  // And from an earlier checkpoint, which -c picks.
  run_well(folder, "stepop -p " + run + " -c 23 -t --num_steps 46");
  CHECK(differences(state_after(folder, 46), trained("")) == "");
}

TEST_CASE("-p alone evaluates the latest checkpoint, -c another one") {
  const WholeRun& trained_run = whole_run();
  const std::string run = only_run(trained_run.folder);
  const auto before = files_below(trained_run.root + "/train/checkpoints");
  const CommandResult latest = run_well(trained_run.folder, "stepop -p " + run);
  CHECK(latest.out.find("evaluating " + run + "/train/checkpoints/model-460.safetensors") !=
        std::string::npos);
  CHECK(latest.out.find("/460/outputs.h5") != std::string::npos);
  CHECK(latest.out.find("train/log_op") == std::string::npos);
  const CommandResult early = run_well(trained_run.folder, "stepop -p " + run + " -c 23");
  CHECK(early.out.find("/23/outputs.h5") != std::string::npos);
  CHECK(files_below(trained_run.root + "/train/checkpoints") == before);
  // A config of the run, and a checkpoint by its path.
  const std::string config = run + "/configs/" + files_below(trained_run.root + "/configs").back();
  const std::string path = run + "/train/checkpoints/model-46.safetensors";
  const CommandResult by_path = run_well(trained_run.folder, "stepop -p " + config + " -c " + path);
  CHECK(by_path.out.find("/46/outputs.h5") != std::string::npos);
}

TEST_CASE("a checkpoint alone is evaluated into a folder of its own") {
  const ScratchFolder folder;
  const CommandResult result =
      run_well(folder, "stepop -n other -b CONFIG -c " + whole_run().checkpoint);
  CHECK(only_run(folder).ends_with("_other"));
  CHECK(result.out.find("accuracy 0.9") != std::string::npos);
  CHECK(result.out.find("/460/outputs.h5") != std::string::npos);
}

TEST_CASE("-r takes the weights into a new run that counts from 0") {
  const ScratchFolder folder;
  const CommandResult result = run_well(folder, "stepop -n tuned -p " + whole_run().root +
                                                    " -r -t --num_steps 3 --optimizer/lr 1e-9");
  const std::string run = only_run(folder);
  CHECK(run.ends_with("_tuned"));
  CHECK(result.out.find("weights from " + whole_run().checkpoint) != std::string::npos);
  CHECK(result.out.find("step 3/3") != std::string::npos);
  const State after = state_after(folder, 3);
  const State before = load_checkpoint(whole_run().checkpoint).tensors;
  const at::Tensor change = after.at("model.fc3.weight").sub(before.at("model.fc3.weight"));
  CHECK(change.abs().max().item<double>() < 1e-6);
}

TEST_CASE("-d makes ten steps and evaluates five batches into logs/debug_runs") {
  const ScratchFolder folder;
  const CommandResult result = run_well(folder, "stepop -n try -b CONFIG -t -d");
  const std::string run = only_run(folder, "logs/debug_runs");
  CHECK(run.ends_with("_try"));
  CHECK(checkpoint_steps(folder.path(run) + "/train/checkpoints") == std::vector<int64_t>({10}));
  CHECK(result.out.find("ended: all 10 steps are done") != std::string::npos);
  const ScratchFolder other;
  const CommandResult short_run =
      run_well(other, "stepop -n try -b CONFIG -t -d --debug/max_steps 2 --debug/max_examples 64");
  CHECK(short_run.out.find("ended: all 2 steps are done") != std::string::npos);
  CHECK(run_python("import h5py, sys; print(h5py.File(sys.argv[1])['index'].shape)",
                   {other.path(only_run(other, "logs/debug_runs")) + "/eval/" +
                    fs::path(only_run(other, "logs/debug_runs")).filename().string() +
                    "/2/outputs.h5"}) == "(64,)\n");
}

TEST_CASE("-l says how much is told") {
  const ScratchFolder folder;
  CHECK(run_well(folder, "stepop -n a -b CONFIG -t --num_steps 2 -l warn").out == "");
  CHECK(only_run(folder).ends_with("_a"));
}

TEST_CASE("several configs are laid over each other; the printed config gives the same run") {
  const ScratchFolder folder;
  const std::string line = "config -b CONFIG " STEPOP_SOURCE_DIR
                           "/configs/small.yaml --optimizer/lr 3e-3 --batch_size=4";
  const std::string printed = run_well(folder, "stepop " + line).out;
  const Config config(parse_yaml(printed, {"printed.yaml", 0}));
  CHECK(config.get<std::vector<int64_t>>("model/hidden") == std::vector<int64_t>({32, 16}));
  CHECK(config.get<std::vector<int64_t>>("model/padding") == std::vector<int64_t>({2, 2}));
  CHECK(config.get<double>("optimizer/lr") == 3e-3);
  CHECK(config.get<int64_t>("batch_size") == 4);
  folder.write("elsewhere/printed.yaml", printed);
  const std::string again = run_well(folder, "cd elsewhere; stepop config -b printed.yaml").out;
  CHECK(again == printed);
  run_well(folder, "stepop -n a -b elsewhere/printed.yaml -t --num_steps 1");
}

TEST_CASE("the config that a run saves is the one that it printed, and trains again") {
  const WholeRun& run = whole_run();
  const std::string name = files_below(run.root + "/configs").back();
  CHECK(name.starts_with("train_"));
  const std::string saved = read_bytes(run.root + "/configs/" + name);
  CHECK(run.result.out.starts_with(saved));
  const ScratchFolder folder;
  folder.write("saved.yaml", saved);
  run_well(folder, "stepop -n a -b saved.yaml -t --num_steps 46");
  CHECK(differences(state_after(folder, 46), trained("")) == "");
}

TEST_CASE("the last epoch's checkpoint and evaluation are there, with every one before") {
  std::vector<int64_t> epochs;
  for (int64_t epoch = 1; epoch <= 20; ++epoch) epochs.push_back(23 * epoch);
  CHECK(checkpoint_steps(whole_run().root + "/train/checkpoints") == epochs);
  for (const auto& file : files_below(whole_run().root)) {
    CAPTURE(file);
    CHECK_FALSE((file.ends_with(".tmp") || file.ends_with(".part")));
  }
}

TEST_CASE("list names every component with its parameters") {
  const std::string list = run_well(ScratchFolder(), "stepop list").out;
  for (const std::string part :
       {"callbacks\n", "datasets\n", "iterators\n", "models\n", "optimizers\n", "samplers\n",
        "schedules\n", "  Classifier ", "  LeNet ", "  Idx ", "  accuracy ", "  AdamW ",
        "  cosine ", "      hidden         [120, 84]      widths of the two hidden layers\n",
        "      images         (required)     "}) {
    CAPTURE(part);
    CHECK(list.find(part) != std::string::npos);
  }
}

TEST_CASE("help teaches with examples, version names the libraries") {
  const ScratchFolder folder;
  const std::string help = run_well(folder, "stepop --help").out;
  CHECK(help.find("stepop -n digits -b configs/digits.yaml -t") != std::string::npos);
  CHECK(run_well(folder, "stepop -h").out == help);
  CHECK(run_well(folder, "stepop").out == help);
  const auto version = lines_of(run_well(folder, "stepop --version").out);
  REQUIRE(version.size() == 3);
  CHECK(version[0].starts_with("stepop "));
  CHECK(version[1].starts_with("LibTorch 2."));
  CHECK(version[2].starts_with("HDF5 1."));
}

TEST_CASE("a config that has nothing to evaluate is refused before there is a folder") {
  const ScratchFolder folder;
  folder.write("train_only.yaml", std::string("datasets: !replace {train: {class: Idx, images: ") +
                                      STEPOP_SOURCE_DIR "/configs/data/digits-train-images.idx.gz" +
                                      ", labels: " STEPOP_SOURCE_DIR
                                      "/configs/data/digits-train-labels.idx.gz}}\n");
  const CommandResult result = run_in(folder, std::string("stepop -b ") + kConfig +
                                                  " train_only.yaml -c " + whole_run().checkpoint);
  CHECK(result.err == "stepop: nothing to evaluate: the config has no datasets/validation\n");
  CHECK(result.exit_code == 2);
  CHECK(only_run(folder) == "");
}

TEST_CASE("two runs of the same second have folders of their own") {
  const ScratchFolder folder;
  run_well(folder,
           "stepop -n a -b CONFIG -t --num_steps 1 >/dev/null & "
           "stepop -n a -b CONFIG -t --num_steps 1 >/dev/null; wait $!");
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder.path("logs"))) {
    CHECK(checkpoint_steps(entry.path().string() + "/train/checkpoints").size() == 1);
    ++count;
  }
  CHECK(count == 2);
}

}  // namespace
}  // namespace stepop
