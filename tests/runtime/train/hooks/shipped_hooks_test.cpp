// The hooks that are there without code of one's own, and `when`.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/system/read_file.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace shipped_hooks_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A training of eight steps whose train op returns `loss` and `update`, the number of the step.
std::string config_with(const std::string& hooks, const std::string& more = "num_steps: 8") {
  return trainer_config(more + "\nlog_freq: 1\nstart_log_freq: 1\nhooks: " + hooks);
}

/// Returns losses of about 1 and, in the steps 30 and 60, of 9; NaN in step 40. `hinge` is 0 in two
/// of three steps, `zero` in nearly all, `below` is about -5; all jump in step 60. `level` is 1,
/// and 5 from step 45 on.
class TestSpikes : public Iterator {
 public:
  explicit TestSpikes(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor loss = model_->forward(batch["image"]).square().mean();
    const int64_t step = global_step() + 1;
    StepOps ops;
    ops.train_op = [=, this] {
      update_.step(loss);
      const double jump = step % 30 == 0 ? 9 : 1 + 0.01 * std::sin(static_cast<double>(step));
      const double value = step == 40 ? std::numeric_limits<double>::quiet_NaN() : jump;
      const bool jumps = step == 60;
      return Scalars{{"other", 100},
                     {"loss", at::full({}, value)},
                     {"hinge", jumps           ? 9.0
                               : step % 3 == 0 ? 0.3
                                               : 0.0},
                     {"zero", jumps        ? 1.0
                              : step == 50 ? 1e-9
                                           : 0.0},
                     {"below", (jumps ? -4 : -5) + 0.01 * std::sin(static_cast<double>(step))},
                     {"level", (step < 45 ? 1 : 5) + 0.01 * std::sin(static_cast<double>(step))}};
    };
    return ops;
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
};
STEPOP_REGISTER_ITERATOR(TestSpikes, {"For tests.", {}});

std::string spikes_with(const std::string& hook) {
  return R"(
iterator: TestSpikes
device: cpu
model: {class: MLP, inputs: 9, hidden: [6], classes: 3}
datasets: {train: {class: Synthetic, size: 800, shape: [1, 3, 3], classes: 3}}
batch_size: 8
num_steps: 70
log_ops: []
eval_hook: null
ckpt_freq: 25
checkpoints: {keep_last: 99}
optimizer: {class: SGD, lr: 0.01}
num_threads: 1
n_data_processes: 0
hooks: {spike: )" +
         hook + "}\n";
}

std::string log_of(TestRun& run) {
  const ScratchFolder folder;
  run.train({}, folder / "log.txt");
  return read_file(folder / "log.txt");
}

TEST_CASE("a training stops at a bound, of one metric or of several") {
  const auto reason = [](const std::string& hook) {
    TestRun run(config_with("{stop: " + hook + "}"));
    return run.train().text;
  };
  CHECK(reason("{class: StopAt, metric: train/train_op/update, above: 4.5}") ==
        "the hook stop: train/train_op/update is 5, above 4.5");
  CHECK(
      contains(reason("{class: StopAt, metric: train/train_op/update, above: 8}"), "all 8 steps"));
  CHECK(reason("{class: StopAt, all: [{metric: train/train_op/update, above: 2.5, below: 9},"
               " {metric: train/train_op/loss, below: 1e9}]}")
            .starts_with("the hook stop: train/train_op/update is 3, above 2.5 and below 9; "
                         "train/train_op/loss is "));
  CHECK(reason("{class: StopAt, any: [{metric: train/train_op/update, above: 6},"
               " {metric: train/train_op/loss, below: -1}]}") ==
        "the hook stop: train/train_op/update is 7, above 6");
  TestRun misspelt(config_with("{stop: {class: StopAt, metric: train/train_op/updat, above: 1}}"));
  CHECK(contains(log_of(misspelt),
                 "StopAt waits for train/train_op/updat, which nothing has logged "
                 "so far; did you mean train/train_op/update?"));
  const auto message = [](const std::string& hook) {
    return message_of([&] { TestRun run(config_with("{stop: " + hook + "}")); });
  };
  CHECK(contains(message("{class: StopAt, metric: a}"), "needs a bound beside it: above: 0.99"));
  CHECK(contains(message("{class: StopAt}"), "give one of metric, all and any"));
  CHECK(contains(message("{class: StopAt, all: 5}"), "hooks/stop/all: expected a list"));
  CHECK(
      contains(message("{class: StopAt, any: [{metric: a, abve: 1}]}"), "hooks/stop/any/0/metric"));
}

TEST_CASE("what one metric was is known when another comes, also behind a resume") {
  // Train ops are logged after the steps 1, 3 and 7; the loss is judged after step 4.
  const std::string yaml = trainer_config(
      "num_steps: 8\nlog_freq: 1000\nckpt_freq: 1\ncheckpoints: {keep_last: 9}\n"
      "hooks: {stop: {class: StopAt, all: [{metric: train/train_op/update, above: 1},"
      " {metric: validation/eval_op/loss, below: 1e9}]}}");
  TestRun run(yaml);
  const std::string reason = run.train().text;
  CHECK(reason.starts_with("the hook stop: train/train_op/update is 2.5, above 1; validation/"));
  CHECK(run.checkpoints().back() == 4);
  TestRun resumed(yaml, run, 3);
  CHECK(resumed.train().text == reason);
  CHECK(resumed.checkpoints().back() == 4);
}

TEST_CASE("a loss that jumps is told with its examples, by the median of those before") {
  TestRun run(spikes_with("{class: LossSpike, loss: loss, window: 20}"));
  const std::string log = log_of(run);
  CHECK(contains(log, "step 30: the loss is 9, "));
  CHECK(contains(log, "step 60: the loss is 9, "));
  CHECK(contains(log, " deviations above the median 1"));
  CHECK(contains(log, " of the 20 steps before; its batch has the training examples "));
  CHECK_FALSE(contains(log, "step 40:"));

  // A resume knows the same losses.
  TestRun resumed(spikes_with("{class: LossSpike, loss: train_op/loss, window: 20}"), run, 25);
  const std::string again = log_of(resumed);
  const auto line = [](const std::string& text) {
    const size_t begin = text.find("step 30: the loss");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(line(log) == line(again));

  TestRun short_of(spikes_with("{class: LossSpike, loss: loss, window: 65}"));
  CHECK_FALSE(contains(log_of(short_of), "the loss is 9"));
  TestRun stops(spikes_with("{class: LossSpike, loss: loss, window: 20, then: stop}"));
  CHECK(stops.train().text.starts_with("the hook spike: the loss is 9, "));
  CHECK(stops.checkpoints().back() == 30);
  TestRun saves(spikes_with("{class: LossSpike, loss: loss, window: 20, then: checkpoint}"));
  saves.train();
  CHECK(saves.checkpoints() == std::vector<int64_t>{25, 30, 50, 60, 70});
  TestRun missing(spikes_with("{class: LossSpike, loss: los}"));
  CHECK(contains(log_of(missing),
                 "LossSpike sees no \"los\"; there are the losses of updates, and numbers that "
                 "train ops return: optimizer, train_op/other, train_op/loss, train_op/hinge, "
                 "train_op/zero, train_op/below, train_op/level"));
  // Without a name it looks at what the update trains with, which does not jump.
  TestRun of_update(spikes_with("{class: LossSpike, window: 20}"));
  CHECK_FALSE(contains(log_of(of_update), "deviations above"));
}

TEST_CASE("losses that are mostly 0, all 0 or below 0 jump where they jump, and nowhere else") {
  for (const std::string loss : {"hinge", "zero", "below"}) {
    CAPTURE(loss);
    TestRun run(spikes_with("{class: LossSpike, window: 20, loss: " + loss + "}"));
    const std::string log = log_of(run);
    const size_t found = log.find(" deviations above the median");
    CHECK(contains(log, "step 60: the loss is "));
    CHECK(found != std::string::npos);
    CHECK(log.find(" deviations above the median", found + 1) == std::string::npos);
    CHECK_FALSE(contains(log, "inf deviations"));
  }
}

TEST_CASE("losses that stay above those before are a new level after ten steps") {
  const auto spikes_of = [](const std::string& log) {
    int spikes = 0;
    for (size_t at = log.find(" deviations above the median"); at != std::string::npos;
         at = log.find(" deviations above the median", at + 1)) {
      ++spikes;
    }
    return spikes;
  };
  const std::string yaml = spikes_with("{class: LossSpike, loss: level, window: 20}");
  TestRun run(yaml);
  const std::string log = log_of(run);
  CHECK(spikes_of(log) == 10);
  CHECK(contains(log, "step 54: the last 10 losses are all above those before"));
  // A resume within the row counts on.
  TestRun resumed(yaml, run, 50);
  const std::string again = log_of(resumed);
  CHECK(spikes_of(again) == 4);
  CHECK(contains(again, "step 54: the last 10 losses are all above those before"));
  CHECK(differences(run.checkpoint(70), resumed.checkpoint(70)) == "");
}

TEST_CASE("the largest gradients are those of the whole norm") {
  TestRun run(config_with("{g: {class: LargestGradients, when: 2, top: 1}}"));
  const std::string log = log_of(run);
  CHECK(contains(log, "step 2: gradients of optimizer: "));
  CHECK_FALSE(contains(log, "step 3: gradients"));
  int checked = 0;
  for (const auto& line : run.metrics()) {
    double squares = 0;
    for (const auto& [name, value] : line.items()) {
      if (name.starts_with("hooks/g/optimizer/"))
        squares += value.get<double>() * value.get<double>();
    }
    if (squares == 0) continue;
    ++checked;
    CHECK(line.at("step").get<int64_t>() % 2 == 0);
    CHECK(std::sqrt(squares) ==
          doctest::Approx(line.at("runtime/optimizer/grad_norm").get<double>()).epsilon(1e-4));
  }
  CHECK(checked == 4);
}

TEST_CASE("what is measured between two logs is logged also by a run that resumes between them") {
  const std::string yaml = trainer_config(
      "num_steps: 8\nstart_log_freq: 4\nlog_freq: 4\nckpt_freq: 1\ncheckpoints: {keep_last: 9}\n"
      "hooks: {g: {class: LargestGradients, when: 3}}");
  const auto norms_in = [](TestRun& run) {
    std::map<std::string, double> norms;
    for (const auto& line : run.metrics()) {
      for (const auto& [name, value] : line.items()) {
        if (!name.starts_with("hooks/g/")) continue;
        norms[std::to_string(line.at("step").get<int64_t>()) + " " + name] = value.get<double>();
      }
    }
    return norms;
  };
  TestRun whole(yaml);
  whole.train();
  const auto norms = norms_in(whole);
  CHECK_FALSE(norms.empty());
  for (const int64_t step : {3, 6, 7}) {
    CAPTURE(step);
    TestRun resumed(yaml, whole, step);
    resumed.train();
    CHECK(norms_in(resumed) == norms);
  }
}

/// Puts a program of that name before all others.
class FakeProgram {
 public:
  FakeProgram(const std::string& name, const std::string& script) : before_(std::getenv("PATH")) {
    folder_.write(name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_.path() + ":" + before_).c_str(), 1);
  }
  ~FakeProgram() { ::setenv("PATH", before_.c_str(), 1); }
  std::string file(const std::string& name) const { return folder_ / name; }

 private:
  std::string before_;
  ScratchFolder folder_;
};

TEST_CASE("the load of the machine is logged, and GPUs as nvidia-smi has them") {
  const FakeProgram program(
      "nvidia-smi", "printf '0, 97, 20480, 65, 250.10\\n1, 3, 12, 40, [N/A]\\n'; sleep 60\n");
  // Until the program has begun, whose numbers other hooks see.
  TestRun run(
      config_with("{m: MachineLoad, stop: {class: StopAt, metric: hooks/m/gpu1_celsius, above: 1}}",
                  "num_steps: 1000000\neval_hook: null"));
  CHECK(run.train().text == "the hook stop: hooks/m/gpu1_celsius is 40, above 1");
  nlohmann::json seen;
  for (const auto& line : run.metrics()) seen.update(line);
  CHECK(seen.at("hooks/m/load_percent").get<double>() >= 0);
  CHECK(seen.at("hooks/m/memory_percent").get<double>() > 0);
  CHECK(seen.at("hooks/m/memory_percent").get<double>() < 100);
  CHECK(seen.at("hooks/m/gpu0_percent").get<double>() == 97);
  CHECK(seen.at("hooks/m/gpu0_watt").get<double>() == 250.1);
  CHECK(seen.at("hooks/m/gpu1_memory_mib").get<double>() == 12);
  CHECK_FALSE(seen.contains("hooks/m/gpu1_watt"));
}

/// Waits in the steps 1 and 2 for more than a second; says in step 4 whether a file is there.
class LooksForFile : public Hook {
 public:
  LooksForFile(const Config& params, const Context& /*context*/)
      : file_(params.get<std::string>("file")) {}
  void after_step(int64_t step) override {
    if (step <= 2) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    for (int i = 0; step == 3 && i < 100 && !std::filesystem::exists(file_); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (step == 4 && std::filesystem::exists(file_)) request_stop("it is there");
  }

 private:
  std::string file_;
};
STEPOP_REGISTER_HOOK(LooksForFile, {"For tests.", {{"file", "", "to be there in step 4"}}});

TEST_CASE("what nvidia-smi prints is read also where logs are rare, so that it never waits") {
  const ScratchFolder folder;
  const FakeProgram program("nvidia-smi",
                            "sleep 0.5; head -c 200000 /dev/zero | tr '\\0' '\\n'; touch " +
                                (folder / "printed") + "; sleep 60\n");
  TestRun run(
      trainer_config("num_steps: 8\nlog_freq: 1000\nlog_ops: []\neval_hook: null\nhooks: "
                     "{m: MachineLoad, file: {class: LooksForFile, file: " +
                     (folder / "printed") + "}}"));
  CHECK(run.train().text == "the hook file: it is there");
}

TEST_CASE("a command or a URL hears of the end and of a failure") {
  const ScratchFolder folder;
  const std::string command =
      "echo $STEPOP_STATE $STEPOP_STEP ${STEPOP_RUN##*/} $STEPOP_ERROR >> " + (folder / "told");
  const std::string both = "call: {class: RunCommand, command: '" + command + "'}";
  TestRun ends(config_with("{" + both + "}"));
  ends.train();
  CHECK(read_file(folder / "told") == "done 8 2026-11-21T10-00-00_test\n");
  TestRun fails(config_with("{ask: {class: AskingHook, what: throw, at: 3}, " + both + "}"));
  CHECK_THROWS(fails.train());
  CHECK(contains(read_file(folder / "told"), "failed 3 2026-11-21T10-00-00_test hooks/ask/"));

  TestRun stops(config_with("{" + both + "}", "num_steps: 8\nstop_at: 2"));
  stops.train();
  CHECK(contains(read_file(folder / "told"), "\nstopped 2 "));

  const FakeProgram curl("curl",
                         "for word; do echo \"$word\"; done > \"$(dirname \"$0\")/words\"\n");
  TestRun url(config_with("{call: {class: RunCommand, url: 'http://example.invalid/a', on: end}}"));
  url.train();
  const std::string words = read_file(curl.file("words"));
  CHECK(contains(words, R"("state":"done","step":8,"error":"")"));
  CHECK(contains(words, "\nhttp://example.invalid/a\n"));

  TestRun bad(config_with("{call: {class: RunCommand, command: 'echo no >&2; exit 3'}}"));
  CHECK(contains(log_of(bad), "RunCommand: the command ended with 3: no"));
  TestRun slow(config_with("{call: {class: RunCommand, command: 'sleep 60', timeout: 1}}"));
  CHECK(contains(log_of(slow), "the command took longer than timeout: 1 seconds, and was ended"));
  CHECK(contains(message_of([] { TestRun run(config_with("{call: RunCommand}")); }),
                 "hooks/call/command: give a command or a url"));
}

TEST_CASE("checkpoints are copied elsewhere behind the training, also at the second try") {
  const ScratchFolder folder;
  const std::string more = "num_steps: 8\nckpt_freq: 2\ncheckpoints: {keep_last: 9}";
  const auto mirror = [](const std::string& words) {
    return "{copy: {class: RunCommand, on: checkpoint, pause: 0, " + words + "}}";
  };
  TestRun run(config_with(
      mirror("command: 'cp {file} " + folder.path() + "/; echo {run} > " + (folder / "run") + "'"),
      more));
  CHECK_FALSE(contains(log_of(run), "RunCommand: `"));
  CHECK(read_file(folder / "model-8.safetensors") == read_file(run.checkpoint_path(8)));
  CHECK(contains(read_file(folder / "run"), "_test\n"));
  const std::string second = "test -e " + (folder / "tried") + " || { touch " + (folder / "tried") +
                             "; exit 4; }; cp {file} " + (folder / "second");
  TestRun retried(config_with(mirror("command: '" + second + "'"), more));
  CHECK_FALSE(contains(log_of(retried), "RunCommand: `"));
  CHECK(read_file(folder / "second") == read_file(retried.checkpoint_path(8)));
  TestRun fails(config_with(mirror("tries: 2, command: 'echo full >&2; exit 4 # {folder}'"), more));
  CHECK(contains(log_of(fails), "failed 2 times: exit status 4: full"));
  TestRun slow(config_with(mirror("end_timeout: 1, command: 'sleep 60 # {file}'"), more));
  CHECK(contains(log_of(slow),
                 "the last checkpoint's command was not done after end_timeout: 1 seconds"));
  CHECK(contains(message_of([&] { TestRun bad(config_with(mirror("command: ls"))); }),
                 "hooks/copy/command: expected {file}, the checkpoint, or {folder}"));
  CHECK(contains(message_of([&] {
                   TestRun bad(config_with("{a: {class: RunCommand, on: checkpoint, url: b}}"));
                 }),
                 "hooks/a/url: on a checkpoint there is a command alone"));
}

/// Waits after the steps 3, 5, ... until a file has a line for each checkpoint of an even step.
class WaitsForLines : public Hook {
 public:
  WaitsForLines(const Config& params, const Context& /*context*/)
      : file_(params.get<std::string>("file")) {}
  void after_step(int64_t step) override {
    const auto has_all = [&] {
      if (!std::filesystem::exists(file_)) return false;
      return std::ranges::count(read_file(file_), '\n') >= (step - 1) / 2;
    };
    for (int i = 0; step > 2 && step % 2 == 1 && i < 6000 && !has_all(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

 private:
  std::string file_;
};
STEPOP_REGISTER_HOOK(WaitsForLines, {"For tests.", {{"file", "", "whose lines are counted"}}});

TEST_CASE("a store that is away for a while is reported once, and the end copies all of a run") {
  const ScratchFolder folder;
  const auto times = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  };
  const auto hooks = [&](const std::string& calls, int failures) {
    const std::string file = folder / calls;
    return fmt::format(
        "{{copy: {{class: RunCommand, on: checkpoint, tries: 1, command: 'echo >> {0}; [ $(wc -l < "
        "{0}) -gt {1} ] || {{ echo away >&2; exit 4; }}; rm -rf {0}.run; cp -rP {{folder}} "
        "{0}.run'}}, lines: {{class: WaitsForLines, file: {0}}}}}",
        file, failures);
  };
  TestRun run(config_with(hooks("calls", 3), "num_steps: 8\nckpt_freq: 2"));
  const std::string log = log_of(run);
  CHECK(times(log, "failed 1 times: exit status 4: away; it has not worked since the start\n") ==
        1);
  CHECK(times(log, "RunCommand: the command works again, after 3 failures\n") == 1);
  // The last call is after the last evaluation.
  const std::string metrics = read_file(folder / "calls.run/train/metrics.jsonl");
  CHECK(metrics == read_file(run.root() + "/train/metrics.jsonl"));
  CHECK(contains(metrics, "validation/eval_op"));

  // The end says it again.
  TestRun never(config_with(hooks("vain", 99), "num_steps: 8\nckpt_freq: 2"));
  const std::string vain = log_of(never);
  CHECK(times(vain, "failed 1 times: exit status 4: away") == 2);
  CHECK(times(vain, "works again") == 0);
}

TEST_CASE("a hook with a trigger gets its steps alone, and all that is no step") {
  TestRun run(config_with("{a: {class: AskingHook, name: a, when: {every: 3, at_start: true}}}"));
  run.train();
  // In the steps 1, 3 and 6.
  CHECK(run.checkpoint(8).at("hooks/a/steps.value").item<int64_t>() == 3);
  CHECK(contains(
      message_of([] { TestRun bad(config_with("{a: {class: AskingHook, when: often}}")); }),
      "hooks/a/when: "));
}

}  // namespace shipped_hooks_test
}  // namespace stepop
