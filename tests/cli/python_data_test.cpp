// The real program on datasets in Python: killed, interrupted, in several processes, and looked at.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/cli/digits_run.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/without_clock.h"

namespace stepop {
namespace python_data_test {

constexpr const char* kData = R"(import os, random, time
import numpy

def note(file, text):
    with open(file, "a") as out: out.write("%s\n" % text)

class Train:
    def __init__(self, size=34, wait=0.0, stuck=None, pids=None, builds=0):
        self.size, self.wait, self.stuck, self.pids = size, wait, stuck, pids
        if pids: note(pids, os.getpid())
        if builds: note("inside", "builds")
        time.sleep(builds)
    def __len__(self): return self.size
    def __getitem__(self, index):
        if self.pids: note(self.pids, os.getpid())
        time.sleep(self.wait)
        if index == self.stuck:
            note("inside", index)
            time.sleep(100)
            note("over", index)
        image = numpy.full((1, 3, 3), index % 3, "float32")
        if index % 4 == 0: image += numpy.random.normal(size=(1, 3, 3)).astype("float32")
        if index % 5 == 0: image *= random.random()
        return image, index % 3

class Stream:
    def __init__(self, size=34, wait=0.0): self.size, self.place, self.wait = size, 0, wait
    def __len__(self): return self.size
    def __iter__(self):
        while self.place < self.size:
            self.place += 1
            time.sleep(self.wait)
            image = numpy.full((1, 3, 3), self.place % 3, "float32") + numpy.random.rand(1, 3, 3).astype("float32")
            yield {"image": image, "class": (self.place - 1) % 3}
        self.place = 0
    def state_dict(self): return {"place": self.place}
    def load_state_dict(self, state): self.place = state["place"]

class Fails(Train):
    def __getitem__(self, index):
        if index == 30: raise ValueError("torn image")
        return Train.__getitem__(self, index)
)";

constexpr const char* kYaml = R"(
iterator: Classifier
model: {class: MLP, inputs: 9, hidden: [5], classes: 3}
datasets:
  train: {class: Python, object: "my_data.py:Train", keys: [image, class]}
  validation: {class: Python, object: "my_data.py:Train", keys: [image, class], kwargs: {size: 13}}
batch_size: 4
num_steps: 36
ckpt_freq: 1
log_freq: 4
optimizer: {class: Adam, lr: 1e-2}
num_threads: 1
n_data_processes: 2
)";

struct Files : ScratchFolder {
  Files() {
    write("my_data.py", kData);
    write("a.yaml", kYaml);
  }
};

/// The program itself, since `stepop` is a function of the shell, which would be killed instead.
const std::string kProgram = "'" STEPOP_BINARY_DIR "/stepop' ";
const std::string kTrain = kProgram + "-n a -b a.yaml -t ";

/// Whether the processes whose numbers are in a file end within some seconds. A dead one may wait
/// for its parent to notice.
void check_vanished(const std::string& file) {
  std::istringstream numbers(read_bytes(file));
  int count = 0;
  for (int pid = 0; numbers >> pid; ++count) {
    bool is_gone = false;
    for (int i = 0; i < 1000 && !is_gone; ++i) {
      std::string state = read_bytes(fmt::format("/proc/{}/stat", pid));
      state = state.substr(std::min(state.size(), state.rfind(')') + 1));
      is_gone = state.empty() || state.starts_with(" Z");
      if (!is_gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(is_gone);
  }
  CHECK(count > 0);
}

/// The arrays of the outputs of the last evaluation, as text.
std::string outputs_of(const ScratchFolder& folder) {
  return run_python(
      "import glob, sys, h5py\n"
      "name = sorted(glob.glob(sys.argv[1] + '/eval/*/36/outputs.h5'))[0]\n"
      "def show(name, each):\n"
      "    if isinstance(each, h5py.Dataset) and each.shape: print(name, each[:].tolist())\n"
      "h5py.File(name).visititems(show)\n",
      {folder.path(only_run(folder))});
}

TEST_CASE("killed twice and resumed from another folder, a training ends with the same bits") {
  for (const std::string& train :
       {std::string("--datasets/train/kwargs '{wait: 0.004}' "),
        std::string("--datasets/train '{class: Python, object: \"my_data.py:Stream\", kwargs: "
                    "{wait: 0.004}, shuffle: {buffer: 20}}' ")}) {
    CAPTURE(train);
    const Files whole;
    run_well(whole, kTrain + train + "--n_data_processes 0");
    const Files folder;
    const auto kill_at = [&](int step, const std::string& start) {
      return start + " & pid=$!; until_ok 'ls " + folder.path() +
             "/logs/*/train/checkpoints/model-" + std::to_string(step) +
             ".safetensors'; kill -9 $pid; wait $pid; ";
    };
    const CommandResult result =
        run_in(folder, "export OMP_NUM_THREADS=1; " + std::string(kUntil) +
                           kill_at(5, kTrain + train) + "mkdir elsewhere; cd elsewhere; " +
                           kill_at(15, kProgram + "-p ../logs/* -t --n_data_processes 1") +
                           "stepop -p ../logs/* -t");
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    CHECK(differences(state_after(folder, 36), state_after(whole, 36)) == "");
    CHECK(outputs_of(folder) == outputs_of(whole));
    CHECK(outputs_of(whole).find("outputs/logits") != std::string::npos);
  }
}

TEST_CASE("a sweep trains on what its config names by a relative file of Python") {
  const Files folder;
  folder.write("met.py", "def count(target, prediction): return len(target)\n");
  folder.write(
      "b.yaml",
      "num_steps: 4\n"
      "eval_hook: {eval_callbacks: {count: {class: PythonMetric, metric: \"met.py:count\"}}}\n");
  folder.write("sweep.yaml", "base: [a.yaml, b.yaml]\ngrid: {seed: [1, 2]}\n");
  run_well(folder, "mkdir elsewhere; cd elsewhere; " + kProgram + "sweep ../sweep.yaml");
  const std::string config =
      run_well(folder, "mkdir other; cd other; " + kProgram + "config -b ../a.yaml").out;
  CHECK(config.find(folder / "my_data.py:Train") != std::string::npos);
}

TEST_CASE("a training that is killed leaves no process behind") {
  struct Row {
    const char* name;
    const char* kwargs;
    const char* until;
  };
  for (const Row& row : {Row{"trains", "{pids: pids, wait: 0.01}",
                             "ls logs/*/train/checkpoints/model-5.safetensors"},
                         Row{"reads", "{pids: pids, stuck: 20}", "[ -e inside ]"},
                         Row{"builds", "{pids: pids, builds: 100}", "[ -e inside ]"}}) {
    CAPTURE(row.name);
    const Files folder;
    const CommandResult result =
        run_in(folder, kUntil + kTrain + "--datasets/train/kwargs '" + row.kwargs +
                           "' & pid=$!; until_ok '" + row.until + "'; kill -9 $pid; wait $pid");
    CAPTURE(result.err);
    CHECK(result.exit_code == 137);
    check_vanished(folder / "pids");
  }
}

TEST_CASE("a signal ends a training in a slow example, with its state saved, and at its start") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const Files folder;
    const CommandResult result = run_in(
        folder, std::string(kUntil) + "export OMP_NUM_THREADS=1; " + kTrain +
                    fmt::format("--n_data_processes {} ", workers) +
                    "--datasets/train/kwargs '{stuck: 21, pids: pids}' --samplers/train sequential "
                    "& pid=$!; until_ok '[ -e inside ]'; sleep 0.2; kill -INT $pid; wait $pid");
    CAPTURE(result.err);
    CHECK(result.exit_code == 130);
    CHECK(without_busy(result.err) == "SIGINT: finishing step 6; once more ends at once\n");
    CHECK(result.out.find("saved; resume with:  ") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "over"));
    check_vanished(folder / "pids");
    CHECK(state_after(folder, 5).size() > 3);
  }
  for (const std::string line : {"-n a -b a.yaml -t", "-b a.yaml -t --check", "data -b a.yaml"}) {
    CAPTURE(line);
    const Files folder;
    const CommandResult result =
        run_in(folder, kUntil + kProgram + line +
                           " --datasets/train/kwargs '{builds: 100, pids: pids}' & pid=$!; "
                           "until_ok '[ -e inside ]'; kill -INT $pid; wait $pid");
    CHECK(result.exit_code == 130);
    CHECK(result.err == "stepop: SIGINT arrived\n");
    check_vanished(folder / "pids");
  }
}

TEST_CASE("an exception ends a training with its place, after what was trained is saved") {
  const Files folder;
  const CommandResult result = run_in(
      folder, kTrain + "--datasets/train/object my_data.py:Fails --samplers/train sequential");
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("datasets/train: example 30: " + folder.path() + "/my_data.py:") !=
        std::string::npos);
  CHECK(result.err.find(": ValueError: torn image\n") != std::string::npos);
  CHECK(result.err.find("saved") != std::string::npos);
  CHECK(state_after(folder, 7).size() > 3);
}

std::vector<nlohmann::json> metrics_of(const ScratchFolder& folder) {
  std::vector<nlohmann::json> rows;
  for (const auto& line :
       lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"))) {
    rows.push_back(without_clock(nlohmann::json::parse(line)));
  }
  return rows;
}

TEST_CASE("two processes that train on a dataset in Python have the losses of one") {
  for (const std::string& train :
       {std::string(),
        std::string("--datasets/train '{class: Python, object: \"my_data.py:Stream\"}' ")}) {
    CAPTURE(train);
    const Files one, two;
    run_well(one, kTrain + train);
    run_well(two, kTrain + train + "--processes 2");
    const auto expected = metrics_of(one), rows = metrics_of(two);
    REQUIRE(rows.size() == expected.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [key, value] : expected[i].items()) {
        CAPTURE(key);
        const auto wanted = value.get<double>();
        CHECK(std::abs(rows[i].at(key).get<double>() - wanted) <= 1e-4 * (1 + std::abs(wanted)));
      }
    }
  }
}

TEST_CASE("stepop data and --check show a dataset in Python") {
  const Files folder;
  folder.write("b.yaml",
               "datasets: {train: !replace {class: Python, object: \"my_data.py:Stream\"}}\n");
  const CommandResult data = run_in(folder, "stepop data -b a.yaml train");
  CHECK(data.exit_code == 0);
  CHECK(data.out.starts_with("datasets/train: " + folder.path() + "/my_data.py:Train (Python "));
  CHECK(data.out.find("\ndatasets/train: Python, 34 examples, all read in ") != std::string::npos);
  CHECK(data.out.find("image  float32  [1, 3, 3]") != std::string::npos);
  CHECK(data.out.find("class  int64") != std::string::npos);
  const CommandResult stream = run_in(folder, "stepop data -b a.yaml b.yaml train");
  CAPTURE(stream.err);
  CHECK(stream.exit_code == 0);
  CHECK(stream.out.starts_with("datasets/train: Python, 34 examples, all read in "));
  for (const std::string config : {"a.yaml", "a.yaml b.yaml"}) {
    const CommandResult check = run_in(folder, "stepop -b " + config + " -t --check");
    CAPTURE(check.err);
    CHECK(check.exit_code == 0);
    CHECK(only_run(folder).empty());
  }
  const CommandResult bad =
      run_in(folder, "stepop data -b a.yaml train --datasets/train/object my_data.py:Fails");
  CHECK(bad.exit_code == 1);
  CHECK(bad.out.find("1 bad example of 34 that were read: 30\n") != std::string::npos);
  CHECK(bad.out.find("ValueError: torn image") != std::string::npos);
}

}  // namespace python_data_test
}  // namespace stepop
