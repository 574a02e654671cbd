// The real binary from the shell, on the digits that ship with the tree.

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/core/config/config.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/run_file_rows.h"
#include "tests/same_state.h"

namespace stepop {
namespace run_test {

namespace fs = std::filesystem;

TEST_CASE("the digits reach 97 %") {
  const auto& last = whole_run().metrics.back();
  CHECK(last["step"] == 460);
  CHECK(last["validation/eval_op/accuracy/accuracy"] >= 0.97);
  CHECK(last["validation/eval_op/loss"] < 0.15);
}

TEST_CASE("the digits with all the extras reach 97 %, and each extra says its part") {
  const ScratchFolder folder;
  const std::string configs = STEPOP_SOURCE_DIR "/configs/";
  const std::string out = run_well(folder, "stepop -n x -b " + configs + "digits.yaml " + configs +
                                               "digits_extras.yaml -t")
                              .out;
  CAPTURE(out);
  for (const char* part :
       {" top2 ", " f1 ", "validation/eval_op/f1: 0 ", "gradients of optimizer: "}) {
    CHECK(out.find(part) != std::string::npos);
  }
  const size_t last = out.rfind("accuracy: accuracy ");
  REQUIRE(last != std::string::npos);
  CHECK(std::stod(out.substr(last + 19)) > 0.97);
}

TEST_CASE("a line of the metrics is JSON with its place and full names") {
  for (const auto& line : whole_run().metrics) {
    for (const char* key : {"step", "epoch", "samples", "time"}) CHECK(line[key].is_number());
    CHECK(line.size() > 4);
  }
  const auto& first = whole_run().metrics.front();
  std::vector<std::string> keys;
  for (const auto& [key, value] : first.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>(
                    {"epoch", "runtime/data_wait", "runtime/examples_per_second",
                     "runtime/optimizer/grad_norm", "runtime/optimizer/lr", "runtime/process_mb",
                     "samples", "step", "time", "train/log_op/accuracy", "train/log_op/loss",
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

TEST_CASE("a callback that fails harms nothing else, and the exit status tells") {
  const ScratchFolder folder;
  const std::string line = std::string("stepop -n a -b ") + kConfig +
                           " -t --num_steps 3 --eval_hook/eval_callbacks "
                           "'{first: {class: Script, path: fail.py}, second: accuracy}'";
  folder.write("fail.py", "raise SystemExit(4)\n");
  const CommandResult result = run_in(folder, line);
  CHECK(result.exit_code == 3);
  CHECK(result.err.starts_with("warning: the callback first failed: "));
  CHECK(result.err.find("fail.py") != std::string::npos);
  const auto metrics = lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"));
  REQUIRE_FALSE(metrics.empty());
  CHECK(nlohmann::json::parse(metrics.back()).contains("validation/eval_op/second/accuracy"));
  CHECK(result.out.find("ended: all 3 steps are done") != std::string::npos);
  const CommandResult again = run_in(folder, "stepop -p " + only_run(folder));
  CHECK(again.exit_code == 3);
}

TEST_CASE("a training that meets NaN says once how to go on") {
  const ScratchFolder folder;
  const CommandResult result =
      run_in(folder, std::string("OMP_NUM_THREADS=1 stepop -n a -b ") + kConfig +
                         " -t --optimizer '!replace {class: SGD, lr: 1e38}'");
  CHECK(result.exit_code == 1);
  const std::string run = only_run(folder);
  const std::string kept = run + "/train/non_finite/2";
  CHECK(result.err ==
        "warning: command line: optimizer/lr: 1e+38: hardly any network learns with more than 10\n"
        "stepop: optimizer: nan in the loss in step 2: the update was not made. A smaller lr, a "
        "warmup or clip_norm may prevent it; on_nan: skip leaves such updates out\n"
        "the indices of its examples: " +
            kept + "/batch.json\nthe state before its update: " + kept +
            "/model-1.safetensors\nnothing was saved yet; start again with a key changed, or it "
            "ends the same way:  " STEPOP_BINARY_DIR "/stepop -p " +
            run + " -t --path/key VALUE\n");
}

TEST_CASE("a terminal shows a progress bar that fits, which the log file does not have") {
  const ScratchFolder folder;
  const std::string screen =
      run_python(R"(
import os, pty, sys
os.chdir(sys.argv[1])
os.environ.update(TERM='xterm', OMP_NUM_THREADS='1')
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:])))
)",
                 {folder.path(), "sh", "-c", "stty cols 60; exec \"$0\" -n a -b \"$1\" -t",
                  STEPOP_BINARY_DIR "/stepop", kConfig});
  CHECK(screen.find("━") != std::string::npos);
  CHECK(screen.find("\x1b[K") != std::string::npos);
  CHECK(screen.find("epoch ") != std::string::npos);
  CHECK(screen.find("/460") != std::string::npos);
  for (size_t end = 0; (end = screen.find("\x1b[K", end + 1)) != std::string::npos;) {
    const std::string bar = screen.substr(screen.rfind('\r', end), end - screen.rfind('\r', end));
    CAPTURE(bar);
    CHECK(std::ranges::count_if(bar, [](unsigned char c) { return (c & 0xC0) != 0x80; }) <= 61);
  }
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
import json, sys
import h5py, numpy
f = h5py.File(sys.argv[1])
print(f['outputs/logits'].shape, f['outputs/logits'].dtype, f['labels/loss'].shape)
print((f['index'][:] == numpy.arange(355)).all())
print(bool(f.attrs['complete']), int(f.attrs['rows']), int(f.attrs['global_step']))
text = lambda v: v.decode() if isinstance(v, bytes) else v
print(text(f.attrs['split']), text(f.attrs['iterator']), text(f.attrs['model']))
print('class: LeNet' in text(f.attrs['config']))
print(json.loads(text(f.attrs['config_json']))['optimizer']['lr'])
accuracy = (f['outputs/logits'][:].argmax(1) == f['outputs/class'][:]).mean()
print(abs(accuracy - float(sys.argv[2])) < 1e-6)
print(abs(f['labels/loss'][:].astype('f8').mean() - float(sys.argv[3])) < 1e-9)
)",
                   {whole_run().outputs,
                    whole_run().metrics.back()["validation/eval_op/accuracy/accuracy"].dump(),
                    whole_run().metrics.back()["validation/eval_op/loss"].dump()}) ==
        "(355, 10) float32 (355,)\nTrue\nTrue 355 460\nvalidation Classifier LeNet\nTrue\n"
        "{'class': 'cosine', 'from': 0.006, 'to': 1e-05, 'steps': 460}\nTrue\nTrue\n");
}

TEST_CASE(
    "a PyTorch module of the same layout, loaded from the checkpoint, gives the same logits") {
  CHECK(run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/train/loop/torch_lenet.py") + R"(
import gzip, sys
import h5py, numpy
from safetensors.torch import load_file

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
  const size_t begin = out.find("python3 -c ");
  REQUIRE(begin != std::string::npos);
  const std::string line = out.substr(begin, out.find('\n', begin) - begin);
  const CommandResult result = run_in(whole_run().folder, STEPOP_SOURCE_DIR "/.venv/bin/" + line);
  CHECK(result.err == "");
  CHECK(result.out == "(355, 10)\n");
}

TEST_CASE("the last epoch's checkpoint and evaluation are there, with every one before") {
  std::vector<int64_t> epochs;
  for (int64_t epoch = 1; epoch <= 20; ++epoch) epochs.push_back(23 * epoch);
  CHECK(checkpoint_steps(whole_run().root + "/train/checkpoints") == epochs);
  for (const auto& file : files_below(whole_run().root)) {
    CAPTURE(file);
    CHECK_FALSE((file.ends_with(".tmp") || file.ends_with(".part")));
    CHECK(find_run_file(file) != nullptr);
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

TEST_CASE("list WORD names the components with that in their name, kind or role") {
  const ScratchFolder folder;
  const auto list = [&](const std::string& words) {
    return run_in(folder, "stepop list " + words + " | tr -s ' '").out;
  };
  const std::string losses = list("losses");
  CHECK(losses.starts_with("losses\n"));
  CHECK(losses.find("\n l1 loss function: The mean of |a - b|.\n") != std::string::npos);
  CHECK(losses.find("\n pix loss term: ") != std::string::npos);
  const std::string terms = list("'loss terms'");
  CHECK(terms.find("\n pix loss term: ") != std::string::npos);
  CHECK(terms.find("\n l1 ") == std::string::npos);
  CHECK(list("schedules").find("\n also read, shown by their names: ConstantLR, ") !=
        std::string::npos);
  CHECK(list("schedules").find("\n StepLR ") == std::string::npos);
  CHECK(list("StepLR").find("\n StepLR Multiplied ") != std::string::npos);
  const std::string some = run_in(folder, "stepop list lenet").out;
  CHECK(some.starts_with("models\n  LeNet "));
  CHECK(some.find("optimizers") == std::string::npos);
  CHECK(run_in(folder, "stepop list optimizers").out.starts_with("optimizers\n"));
  const std::string one = run_in(folder, "stepop list callback confusion").out;
  CHECK(one.starts_with("callbacks\n  confusion_matrix "));
  CHECK(one.find("\n  accuracy ") == std::string::npos);
  CHECK(
      run_in(folder, "stepop list optimiser").err ==
      "stepop: stepop list optimiser: no component or kind of component has that in its name; did "
      "you mean optimizer?\n");
  for (const std::string key : {"checkpoints", "checkpoints/metric"}) {
    CHECK(run_in(folder, "stepop list " + key).err ==
          fmt::format("stepop: stepop list {0}: no component or kind of component has that in its "
                      "name, but {0} is a key of a config: `stepop config -b FILE --keys` has it\n",
                      key));
  }
  const CommandResult none = run_in(folder, "stepop list nothing");
  CHECK(none.exit_code == 2);
  CHECK(none.err ==
        "stepop: stepop list nothing: no component or kind of component has that in its name; "
        "`stepop list` shows all\n");
}

TEST_CASE("list --json has for programs what list and the schema have") {
  const ScratchFolder folder;
  const auto all = nlohmann::json::parse(run_well(folder, "stepop list --json").out);
  const auto schema = nlohmann::json::parse(run_well(folder, "stepop config --schema").out);
  size_t count = 0;
  std::set<std::string> roles;
  for (const auto& [kind, components] : all["components"].items()) {
    for (const auto& component : components) {
      std::string in_schema = component["role"];
      std::replace(in_schema.begin(), in_schema.end(), ' ', '_');
      roles.insert(in_schema);
      const std::string name = in_schema + ":" + component["name"].get<std::string>();
      CAPTURE(name);
      REQUIRE(schema["definitions"].contains(name));
      CHECK(component["about"] == schema["definitions"][name]["description"]);
      ++count;
    }
  }
  CHECK(count + roles.size() == schema["definitions"].size());
  CHECK(all["components"].size() <= 15);
  const auto& lenet = *std::ranges::find_if(
      all["components"]["model"], [](const auto& each) { return each["name"] == "LeNet"; });
  const auto& parameters = lenet["parameters"];
  CHECK(std::count(parameters.begin(), parameters.end(),
                   nlohmann::json({{"name", "hidden"},
                                   {"default", "[120, 84]"},
                                   {"about", "widths of the two hidden layers"}})) == 1);
  CHECK(all["keys"][0]["path"] == "code");
  CHECK(all["commands"][0]["name"] == "config");
  CHECK(run_in(folder, "stepop list --json lenet").err ==
        "stepop: stepop list --json: it has all names; leave out the word\n");
}

TEST_CASE("help teaches with examples, version names the libraries") {
  const ScratchFolder folder;
  const std::string help = run_well(folder, "stepop --help").out;
  CHECK(help.find("stepop -n digits -b configs/digits.yaml -t") != std::string::npos);
  CHECK(run_well(folder, "stepop -h").out == help);
  CHECK(run_well(folder, "stepop").out == help);
  CHECK(run_well(folder, "stepop help sweep").out == run_well(folder, "stepop sweep -h").out);
  CHECK(run_in(folder, "stepop help sweeep").err ==
        "stepop: no command \"sweeep\"; did you mean sweep? `stepop --help` lists the commands\n");
  CHECK(run_well(folder, "stepop list hook").out.starts_with("hooks\n  LargestGradients "));
  const auto version = lines_of(run_well(folder, "stepop --version").out);
  REQUIRE(version.size() == 3);
  CHECK(version[0].starts_with("stepop "));
  CHECK(version[1].starts_with("LibTorch 2."));
  CHECK(version[2].starts_with("HDF5 1."));
}

TEST_CASE("each help fits 100 columns, and speaks of its own command") {
  const ScratchFolder folder;
  std::vector<std::string> names = {""};
  const auto all = nlohmann::json::parse(run_well(folder, "stepop list --json").out);
  for (const auto& command : all["commands"]) names.push_back(command["name"]);
  REQUIRE(names.size() > 15);
  for (const auto& name : names) {
    CAPTURE(name);
    const std::string help = run_well(folder, "stepop " + name + " --help").out;
    for (const auto& line : lines_of(help)) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
    if (name.empty()) continue;
    for (const char* of_training : {"(with -t)", "a run of 10 steps", "without -t", "with -p"}) {
      CHECK(help.find(of_training) == std::string::npos);
    }
  }
  const std::string runs = run_well(folder, "stepop runs --help").out;
  CHECK(runs.find("  -d, --debug             also the runs of -d, which lie in debug_runs/\n") !=
        std::string::npos);
  CHECK(
      runs.find("  -p, --project X         one run, or a folder of runs; the word alone does\n") !=
      std::string::npos);
  // What is broken off stands below the text.
  CHECK(runs.find("also !=, <, <=, >, >=;\n                          repeat for more\n") !=
        std::string::npos);
  CHECK(run_in(folder, "stepop list -p x").err.starts_with("stepop: stepop list does not take -p"));
}

TEST_CASE("the columns of list stand below each other, however long a key is") {
  const std::string text = run_well(ScratchFolder(), "stepop list geometric").out;
  const auto column = [&](const std::string& words) {
    const size_t at = text.find(words);
    REQUIRE(at != std::string::npos);
    return at - text.rfind('\n', at);
  };
  CHECK(column("which of them changes") == column("which of its outputs is compared"));
  CHECK(column("which of them changes") == column("its inputs"));
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

}  // namespace run_test
}  // namespace stepop
