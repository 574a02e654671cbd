// Trainings on datasets in Python: the same bits with any number of workers and after any stop.

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/train/iterator/splits.h"
#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"
#include "tests/same_state.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {
namespace python_training_test {

constexpr const char* kData = R"(import json, random
import numpy

class Train:
    """Some examples take random numbers, others do not."""
    def __init__(self, size=34): self.size = size
    def __len__(self): return self.size
    def __getitem__(self, index):
        image = numpy.full((1, 3, 3), index % 3, "float32")
        if index % 4 == 0: image += numpy.random.normal(size=(1, 3, 3)).astype("float32")
        if index % 5 == 0: image *= random.random()
        return image, index % 3

class Plain(Train):
    def __getitem__(self, index): return numpy.full((1, 3, 3), 0.1 * index, "float32"), index % 3

class Stream:
    """Iterable, with a state."""
    def __init__(self, size=34, log=None): self.size, self.place, self.epoch, self.log = size, 0, 0, log
    def set_epoch(self, epoch): self.epoch = epoch
    def __iter__(self):
        if self.log: print("pass", self.epoch, "from", self.place, file=open(self.log, "a"))
        while self.place < self.size:
            index = self.place
            self.place += 1
            image = numpy.full((1, 3, 3), (index + self.epoch) % 3 + 0.01 * index, "float32")
            image += 0.1 * numpy.random.normal(size=(1, 3, 3)).astype("float32")
            yield {"image": image, "class": index % 3, "name": "n%d" % index}
        self.place = 0
    def state_dict(self): return {"place": self.place}
    def load_state_dict(self, state): self.place = state["place"]

class Sized(Stream):
    def __len__(self): return self.size

class Stateless:
    def __iter__(self):
        for index in range(34):
            yield {"image": numpy.random.rand(1, 3, 3).astype("float32"), "class": index % 3}

class BadState(Sized):
    def state_dict(self): return {"place": (self.place, 1)}

class Short(Stream):
    def load_state_dict(self, state): self.place, self.size = state["place"], state["place"]

class Flow:
    """Its place is the end of a pass until the next one has begun."""
    def __init__(self): self.place, self.passes, self.is_loaded = 0, 0, False
    def __len__(self): return 34
    def begin(self):
        if not self.is_loaded: self.place = 0
        self.is_loaded = False
        return range(34)
    def __iter__(self):
        order = self.begin()
        while self.place < 34:
            index = int(order[self.place])
            self.place += 1
            yield {"image": numpy.full((1, 3, 3), index % 3 + 0.01 * index, "float32"), "class": index % 3}
    def state_dict(self): return {"place": self.place, "passes": self.passes}
    def load_state_dict(self, state):
        self.place, self.passes, self.is_loaded = state["place"], state["passes"], True

class Counts(Flow):
    """Shuffles by its own count of passes."""
    def begin(self):
        if not self.is_loaded: self.passes += 1
        super().begin()
        return numpy.random.default_rng(self.passes).permutation(34)

class Fails(Sized):
    def __iter__(self):
        for index in range(34):
            if index == 20: raise ValueError("torn")
            yield {"image": numpy.zeros((1, 3, 3), "float32"), "class": index % 3}
)";

struct Files : PythonFiles {
  Files() : PythonFiles(kData) {}

  std::string config_of(const std::string& train, const std::string& more,
                        const std::string& validation = "") const {
    return "iterator: Classifier\n"
           "model: {class: MLP, inputs: 9, hidden: [5], classes: 3}\n"
           "datasets:\n  train: " +
           train + "\n  validation: " +
           (validation.empty() ? config("Train", "keys: [image, class], kwargs: {size: 13}")
                               : validation) +
           "\noptimizer: {class: Adam, lr: 1e-2}\nbatch_size: 4\nnum_threads: 1\n" + more + "\n";
  }
};

struct End {
  State state;
  std::vector<std::string> metrics;
};

End end_of(TestRun& run, size_t first_line = 0) {
  run.train();
  End end{run.checkpoint(run.session.position().global_step), {}};
  for (auto& line : run.metrics()) {
    if (first_line > 0) {
      --first_line;
    } else {
      end.metrics.push_back(without_clock(line).dump());
    }
  }
  return end;
}

/// Trains with 3 workers, and from some checkpoints with 0 and 1: all ends are the same.
void check_resumes(const std::string& config) {
  TestRun whole(config + "n_data_processes: 3\n");
  const End end = end_of(whole);
  REQUIRE(end.metrics.size() > 2);
  int64_t workers = 0;
  for (const int64_t step : {3, 9, 14}) {
    CAPTURE(step);
    const Checkpoint saved = load_checkpoint(whole.checkpoint_path(step));
    TestRun resumed(config + fmt::format("n_data_processes: {}\n", workers++ % 2), whole, saved);
    const End again = end_of(resumed, resumed.metrics().size());
    CHECK(differences(again.state, end.state) == "");
    REQUIRE(again.metrics.size() <= end.metrics.size());
    CHECK(std::equal(again.metrics.rbegin(), again.metrics.rend(), end.metrics.rbegin()));
  }
}

constexpr const char* kShort = "num_epochs: 2\nckpt_freq: 1\nlog_freq: 2\n";

TEST_CASE("a training has the same bits with 0, 1 and 3 workers and after stops") {
  const Files files;
  check_resumes(files.config_of(files.config("Train", "keys: [image, class]"), kShort));
}

TEST_CASE("a training on an iterable dataset returns to its exact place") {
  const Files files;
  check_resumes(files.config_of(files.config("Sized"), kShort));
}

TEST_CASE("a training on an iterable dataset through a buffer that shuffles does so too") {
  const Files files;
  check_resumes(
      files.config_of(files.config("Stream", "shuffle: {buffer: 12}, examples: 34"), kShort));
}

TEST_CASE("an iterable dataset whose place is stale until a pass has begun resumes exactly, too") {
  const Files files;
  for (const std::string name : {"Flow", "Counts"}) {
    CAPTURE(name);
    check_resumes(files.config_of(files.config(name), kShort));
  }
  check_resumes(files.config_of(files.config("Flow", "shuffle: {buffer: 12}"), kShort));
}

TEST_CASE("without a state, resume: skip reads the earlier examples again") {
  const Files files;
  check_resumes(files.config_of(files.config("Stateless", "resume: skip, examples: 34"), kShort));
}

TEST_CASE("views around a dataset in Python give what they give around others") {
  const Files files;
  const auto views = [&](const std::string& name, const std::string& inner) {
    return fmt::format(
        "{{class: Subset, range: [2, 30], dataset: {}}}",
        fmt::format(fmt::runtime(inner), files.config(name, "keys: [image, class]")));
  };
  const std::string cached = views("Plain", "{{class: Cached, dataset: {}}}");
  check_resumes(files.config_of(cached, kShort, cached));
  check_resumes(files.config_of(views("Train", "{}"), kShort));
  CHECK(message_of([&] {
          TestRun run(files.config_of(views("Train", "{{class: Cached, dataset: {}}}"), kShort));
        }).find("its example 0 is another one each time it is read") != std::string::npos);
}

TEST_CASE("a pass of an iterable dataset has its examples in order, and each pass its epoch") {
  const Files files;
  const std::string log = files / "log";
  TestRun run(files.config_of(files.config("Sized", "kwargs: {log: " + log + "}"),
                              "num_epochs: 3\nn_data_processes: 1\n"));
  CHECK(run.session.context().splits.order("train").batches_per_epoch() == 9);
  run.train();
  const std::string passes = read_bytes(log);
  CHECK(passes.find("pass 0 from 0\n") != std::string::npos);
  CHECK(passes.find("pass 1 from 0\n") != std::string::npos);
  CHECK(passes.find("pass 2 from 0\n") != std::string::npos);
  const Dataset& dataset = run.session.context().splits.dataset("train");
  CHECK(dataset.size() == 34);
  CHECK(example_of(dataset, 17).texts.at("name") == "n17");
  CHECK(example_of(dataset, 3).texts.at("name") == "n3");
}

TEST_CASE("an iterable dataset is evaluated in its order, each example once") {
  const Files files;
  TestRun run(files.config_of(files.config("Train", "keys: [image, class]"), "num_epochs: 1\n",
                              files.config("Sized", "kwargs: {size: 13}")));
  run.train();
  const auto lines = run.metrics();
  CHECK(std::any_of(lines.begin(), lines.end(), [](const auto& line) {
    return line.contains("validation/eval_op/accuracy/accuracy");
  }));
}

TEST_CASE("an iterable dataset that cannot resume or does not know its length is refused") {
  const Files files;
  const auto message = [&](const std::string& name, const std::string& more) {
    return message_of([&] { TestRun run(files.config_of(files.config(name, more), kShort)); });
  };
  CHECK(message("Stateless", "examples: 34") ==
        "datasets/train: a Stateless is iterable and has no state_dict and load_state_dict, so a "
        "resume cannot return to its place: make it a dataset with __getitem__ and __len__, give "
        "it both, or accept by resume: skip that a resume reads all earlier examples of the epoch "
        "again");
  CHECK(message("Stream", "") ==
        "test.yaml:4: datasets/train: a stream that does not know how many examples it has: "
        "nothing says how long an epoch is. Give max_batches_per_epoch, or the number as "
        "\"examples\" here");
  CHECK(message("Sized", "collate_fn: '" + files.path() + "/my_data.py:Plain'") ==
        "datasets/train: collate_fn: a Sized is iterable, and its examples are put into batches by "
        "the training; change them in __iter__, or pad them by Padded");
}

TEST_CASE("what goes wrong in an iterable dataset is said with its example") {
  const Files files;
  const auto message = [&](const std::string& name) {
    TestRun run(files.config_of(files.config(name), "num_epochs: 1\nn_data_processes: 0\n"));
    return message_of([&] { run.train(); });
  };
  CHECK(
      message("BadState")
          .find(
              "the state of the dataset is not made of numbers, texts, lists and maps with texts "
              "as "
              "keys alone, so it cannot be in a checkpoint; resume: skip reads all examples again "
              "instead: {'place': (1, 1)}") != std::string::npos);
  CHECK(message("Fails").find("datasets/train: example 20: ") != std::string::npos);
  CHECK(message("Fails").find(": ValueError: torn\n") != std::string::npos);
  const std::string config = files.config_of(files.config("Short", "examples: 34"), kShort);
  TestRun whole(config + "n_data_processes: 0\n");
  whole.train();
  TestRun resumed(config, whole, 9);
  CHECK(message_of([&] { resumed.train(); }) != "no error");
}

TEST_CASE("examples of different sizes are padded") {
  const PythonFiles files(R"(import numpy
make = lambda: [{"x": numpy.arange(index % 4 + 1), "class": index} for index in range(9)]
)");
  const auto dataset =
      dataset_of("{class: Padded, pad: {x: -1}, dataset: " + files.config("make") + "}");
  const Batch batch = batch_of(*dataset, {0, 2, 5});
  CHECK(batch["x"].sizes() == at::IntArrayRef({3, 3}));
  CHECK(batch["x"][2][1].item<int64_t>() == 1);
  CHECK(batch["x"][2][2].item<int64_t>() == -1);
  CHECK(batch["x_length"][2].item<int64_t>() == 2);
}

TEST_CASE("a training without examples says so") {
  const Files files;
  CHECK(message_of([&] {
          TestRun run(files.config_of(
              files.config("Train", "keys: [image, class], kwargs: {size: 0}"), kShort));
          run.session.check();
        }) == "test.yaml:4: datasets/train: the dataset is empty: it has no example");
}

}  // namespace python_training_test
}  // namespace stepop
