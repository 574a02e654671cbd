// A training on a stream is stopped and resumed as one on a dataset is.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/batch_norm.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/tar_file.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {
namespace loop_stream_test {

constexpr const char* kSmallBuffer = ", shuffle: {buffer: 6}";

/// Three shards of 10 grey images [1, 3, 3], of three classes; `bad` is no image.
struct Shards : ScratchFolder {
  explicit Shards(int bad = -1) {
    for (int shard = 0; shard < 3; ++shard) {
      std::string bytes;
      for (int i = 10 * shard; i < 10 * shard + 10; ++i) {
        const std::string png = encode_png(at::full({3, 3, 1}, 80 * (i % 3) + i, at::kByte));
        bytes += tar_member(fmt::format("{:02}.png", i), i == bad ? "torn" : png) +
                 tar_member(fmt::format("{:02}.cls", i), std::to_string(i % 3));
      }
      write(fmt::format("{}.tar", shard), bytes + tar_end());
    }
  }

  /// `stream` follows the path of the shards of the split train.
  std::string config(const std::string& more, const std::string& stream = kSmallBuffer) const {
    return "iterator: Classifier\n"
           "model: {class: MLP, inputs: 9, hidden: [5], classes: 3}\n"
           "datasets:\n"
           "  train: {class: TarShards, path: " +
           path() + stream +
           "}\n"
           "  validation: {class: TarShards, path: " +
           path() +
           "}\n"
           "optimizer: {class: Adam, lr: 1e-2}\n"
           "batch_size: 4\nnum_threads: 1\n" +
           more + "\n";
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

TEST_CASE("a training on shards that resumes anywhere ends with the same bits and metrics") {
  const Shards shards;
  struct Row {
    const char* name;
    const char* more;
    const char* stream;
  };
  for (const Row& row :
       {Row{"passes", "num_epochs: 3\nckpt_freq: 1\nlog_freq: 2", kSmallBuffer},
        Row{"batches", "num_epochs: 4\nmax_batches_per_epoch: 5\nckpt_freq: 1\nlog_freq: 3",
            kSmallBuffer},
        Row{"accumulated", "num_epochs: 3\naccumulate: 3\ndrop_last: true\nckpt_freq: 1",
            kSmallBuffer},
        Row{"default buffer", "num_epochs: 2\nckpt_freq: 1\nlog_freq: 1", ""},
        Row{"in order", "num_epochs: 2\nckpt_freq: 1", ", shuffle: false"}}) {
    CAPTURE(row.name);
    const std::string config = shards.config(row.more, row.stream);
    TestRun whole(config + "n_data_processes: 3\n");
    const End end = end_of(whole);
    CHECK(end.metrics.size() > 2);
    for (const int64_t step : whole.checkpoints()) {
      if (step % 5 != 2 && step != 8) continue;
      CAPTURE(step);
      const Checkpoint saved = load_checkpoint(whole.checkpoint_path(step));
      CHECK(saved.progress.streams.contains("train"));
      const int64_t workers = step % 2 == 0 ? 0 : 2;
      TestRun resumed(config + fmt::format("n_data_processes: {}\n", workers), whole, saved);
      const size_t lines = resumed.metrics().size();
      const End again = end_of(resumed, lines);
      CHECK(differences(again.state, end.state) == "");
      REQUIRE(again.metrics.size() <= end.metrics.size());
      CHECK(std::equal(again.metrics.rbegin(), again.metrics.rend(), end.metrics.rbegin()));
    }
  }
}

TEST_CASE("an epoch of a stream is a pass, or as many batches as the config says") {
  const Shards shards;
  const auto order = [&](const std::string& more, const std::string& stream = "") {
    TestRun run(shards.config(more, stream));
    return run.session.context().splits.order("train").batches_per_epoch();
  };
  CHECK(order("num_epochs: 1") == 8);  // counted
  CHECK(order("num_epochs: 1\ndrop_last: true") == 7);
  CHECK(order("num_epochs: 1", ", examples: 12") == 3);
  CHECK(order("num_epochs: 1\nmax_batches_per_epoch: 100") == 100);
}

TEST_CASE("a stream that does not know how long it is needs a number, and has no sampler") {
  const Shards shards;
  const std::string piped =
      "iterator: Classifier\nmodel: {class: MLP, inputs: 9, classes: 3}\n"
      "datasets:\n  train: {class: TarShards, urls: '" +
      shards.path() +
      "/{0..2}.tar', pipe: 'cat {url}'}\n"
      "optimizer: {class: SGD, lr: 1}\nbatch_size: 4\nnum_epochs: 1\n";
  CHECK(
      message_of([&] { TestRun run(piped); }) ==
      "test.yaml:4: datasets/train: a stream that does not know how many examples it has: nothing "
      "says how long an epoch is. Give max_batches_per_epoch, or the number as \"examples\" here");
  TestRun run(piped + "max_batches_per_epoch: 3\n");
  run.session.check();
  CHECK(run.session.position().train_examples == 0);
  run.train();
  CHECK(run.session.position().samples_seen == 12);
  CHECK(message_of([&] { TestRun(shards.config("num_epochs: 1\nsamplers: {train: sequential}")); })
            .ends_with("datasets/train is a stream, which has no sampler: its own key \"shuffle\" "
                       "says how it is shuffled"));
  const std::string evaluated =
      piped + "max_batches_per_epoch: 3\neval_hook: {eval_op: train/eval_op}\n";
  CHECK(message_of([&] { TestRun(evaluated).session.check(); })
            .find("datasets/train: a stream that does not know how many examples it has cannot be "
                  "evaluated") != std::string::npos);
}

TEST_CASE(
    "an evaluation of a stream has all its examples once, in their order, and callbacks see them") {
  const Shards shards;
  TestRun run(shards.config("num_epochs: 1\neval_hook: {eval_callbacks: {shown: examples}}"));
  run.session.check();
  run.train();
  CHECK(run.session.position().samples_seen == 30);
  std::string scalars;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.root())) {
    if (entry.path().filename() == "scalars.json") scalars = read_bytes(entry.path());
  }
  CHECK(scalars.find("validation/eval_op/accuracy/accuracy") != std::string::npos);
  CHECK(run.session.context().splits.fixed_examples("train").indices() ==
        std::vector<int64_t>{0, 1, 2, 3});
  CHECK(run.session.context().splits.dataset("validation").size() == 30);
}

TEST_CASE("statistics of batch normalization are measured over a pass of a stream") {
  const Shards shards;
  const std::string config = R"(
iterator: TestTrainer
model: {class: TestDropoutNet, inputs: 9}
optimizer: {class: Adam, lr: 1e-2}
num_threads: 1
batch_size: 5
num_epochs: 2
swa: {every: 4}
eval_weights: swa
datasets:
)" + fmt::format("  train: {{class: TarShards, path: {0}}}\n  validation: {{class: TarShards, "
                 "path: {0}}}\n",
                 shards.path());
  TestRun run(config);
  run.session.check();
  run.train();
  const State state = run.checkpoint(12);
  // Six batches of one size, whose order so does not matter.
  std::vector<at::Tensor> images;
  for (int64_t i = 0; i < 30; ++i) {
    Random random(0);
    images.push_back(
        run.session.context().splits.dataset("validation").get(i, random).tensors.at("image"));
  }
  const at::Tensor hidden =
      at::linear(at::stack(images).flatten(1), state.at("swa_model.first.weight"),
                 state.at("swa_model.first.bias"));
  CHECK((state.at("swa_model.norm.running_mean") - hidden.mean(0)).abs().max().item<double>() <
        1e-5);
  CHECK(state.at("swa_model.norm.num_batches_tracked").item<int64_t>() == 6);
  CHECK((state.at("model.norm.running_mean") - hidden.mean(0)).abs().max().item<double>() > 1e-3);

  // An evaluation of a checkpoint that lacks them measures the same.
  Session session(test_config(config), /*train=*/false, false, false);
  Checkpoint unmeasured = load_checkpoint(run.checkpoint_path(12));
  unmeasured.tensors.at("swa.measured").zero_();
  unmeasured.tensors.at("swa_model.norm.running_mean").zero_();
  session.restore_for_evaluation(unmeasured, "model-12");
  measure_batch_norm(session.iterator(), session.context(), session.position(), {});
  CHECK(session.context()
            .tracker.save("swa_model")
            .at("norm.running_mean")
            .equal(state.at("swa_model.norm.running_mean")));
}

TEST_CASE("a NaN in a training on a stream is recorded with the names of its records") {
  const Shards shards;
  std::string config = shards.config("num_epochs: 2\nlog_freq: 1");
  const std::string optimizer = "{class: Adam, lr: 1e-2}";
  config.replace(config.find(optimizer), optimizer.size(), "{class: SGD, lr: 1e38}");
  TestRun run(config);
  message_of([&] { run.train(); });
  const std::string folder = run.root() + "/train/non_finite/2";
  const auto record = nlohmann::json::parse(read_bytes(folder + "/batch.json"));
  CHECK(record["batches"] == nlohmann::json::parse("[[4, 5, 6, 7]]"));
  CHECK(record["records"][0].size() == 4);
  CHECK(record["records"][0][0].get<std::string>().find(".tar: ") != std::string::npos);
  const Checkpoint saved = load_checkpoint(folder + "/model-1.safetensors");
  CHECK(saved.progress.streams.at("train").find("\"number\":4,") != std::string::npos);
}

TEST_CASE("a damaged example ends a training with its shard and name, or is left out") {
  const Shards shards(17);
  const std::string message =
      message_of([&] { TestRun(shards.config("num_epochs: 1\neval_hook: null")).train(); });
  CHECK(message.starts_with("datasets/train: example "));
  CHECK(message.find(shards.path() + "/1.tar: 17: .png: the image") != std::string::npos);
  TestRun run(shards.config("num_epochs: 2\neval_hook: null\nlog_ops: [train/log_op]",
                            ", on_damage: skip"));
  run.train();
  CHECK(run.session.position().samples_seen == 60);
}

}  // namespace loop_stream_test
}  // namespace stepop
