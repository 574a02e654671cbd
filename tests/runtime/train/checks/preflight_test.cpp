#include "runtime/train/checks/preflight.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "runtime/train/step/batch_mistakes.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace preflight_test {

/// Returns what its config asks for: right by default.
class TestFaulty : public Iterator {
 public:
  explicit TestFaulty(const Context& context)
      : Iterator(context), fault_(config().get("fault", "none")) {
    context.track("count", count_);
    context.track("noise", noise_);
  }

  StepOps step_op(const Batch& batch) override {
    ++count_;
    noise_ = at::rand({2});
    const int64_t size = batch.size();
    if (fault_ == "key") batch["imag"];
    if (fault_ == "fixed size") batch["image"].view({5, -1});
    if (fault_ == "classes") at::cross_entropy_loss(at::zeros({size, 1}), batch["class"]);
    if (fault_ == "class type")
      at::cross_entropy_loss(at::zeros({size, 2}), batch["class"].to(at::kFloat));
    if (fault_ == "index") at::embedding(at::zeros({1, 2}), batch["class"]);
    if (fault_ == "shapes") at::zeros({2, 3}).mm(at::zeros({2, 3}));
    StepOps ops{.train_op = [] {},
                .log_op = [=, this] { return logs(size); },
                .eval_op = [=, this] { return outputs(size); }};
    if (fault_ == "no log_op") ops.log_op = {};
    if (fault_ == "no train_op") ops.train_op = nullptr;
    if (fault_ == "no eval_op") ops.eval_op = {};
    if (fault_ == "train ops") {
      ops.train_op = {};
      ops.train_ops = {{"train_op/generator", [] {}}, {"train_op/critic", [] {}}};
    }
    return ops;
  }

 private:
  Logs logs(int64_t size) const {
    if (fault_ == "scalar") return {.scalars = {{"loss", at::zeros({size})}}};
    if (fault_ == "undefined scalar") return {.scalars = {{"loss", at::Tensor()}}};
    if (fault_ == "image") return {.images = {{"input", at::zeros({size, 8, 8, 3})}}};
    if (fault_ == "bytes") return {.images = {{"input", at::zeros({1, 3, 8, 8}, at::kByte)}}};
    if (fault_ == "image key") return {.images = {{"../../x", at::zeros({1, 3, 8, 8})}}};
    if (fault_ == "long key") return {.images = {{std::string(300, 'x'), at::zeros({1, 3, 8, 8})}}};
    if (fault_ == "text key") return {.texts = {{"a//b", "once upon a time"}}};
    if (fault_ == "log throws") throw std::runtime_error("no such thing");
    return {.scalars = {{"number", 1}, {"tensor", at::zeros({1, 1})}}};
  }

  EvalOutputs outputs(int64_t size) const {
    if (fault_ == "batch") return {.outputs = {{"logits", at::zeros({size - 1, 3})}}};
    if (fault_ == "number") return {.labels = {{"loss", at::zeros({})}}};
    return {.outputs = {{"logits", at::zeros({size, 3})}}};
  }

  std::string fault_;
  int64_t count_ = 0;
  at::Tensor noise_;
};

STEPOP_REGISTER_ITERATOR(TestFaulty, {"For tests.", {}});

/// Examples that cannot be loaded, or none.
class TestTorn : public Dataset {
 public:
  explicit TestTorn(const Config& params) : size_(params.get<int64_t>("size")) {}
  int64_t size() const override { return size_; }
  Example get(int64_t, Random&) const override { throw std::runtime_error("a.png: cut short"); }

 private:
  int64_t size_;
};

STEPOP_REGISTER_DATASET(TestTorn, {"For tests.", {{"size", "", "number of examples"}}});

constexpr const char* kConfig = R"(
iterator: TestFaulty
device: cpu
datasets:
  train: {class: Synthetic, size: 12}
  validation: {class: Synthetic, size: 12}
batch_size: 5
num_steps: 1
)";

/// The same without a validation split, in a training of one epoch.
constexpr const char* kEpoch = R"(
iterator: TestFaulty
device: cpu
datasets: {train: {class: Synthetic, size: 12}}
batch_size: 5
num_steps: 3
)";

/// What a session with these further lines is refused with, as a run would be before its folder.
std::string refused(const std::string& more, const char* config = kConfig) {
  return message_of([&] {
    Session session(test_config(config + more), true, false, false);
    session.check();
  });
}

TEST_CASE("a sound iterator passes, and nothing of the check is kept") {
  Session session(test_config(kConfig), true, false, false);
  const Tracker& tracker = session.context().tracker;
  const at::Tensor random = tracker.save("random").at("cpu").clone();
  session.check();
  CHECK(tracker.save("count").at("value").item<int64_t>() == 0);
  CHECK(tracker.save("noise").empty());
  CHECK(tracker.save("random").at("cpu").equal(random));
}

TEST_CASE("an op that is due and was not returned") {
  CHECK(refused("fault: no log_op\nlog_ops: [validation/log_op]") ==
        "test.yaml:10: log_ops/0: validation/log_op is due, but step_op of the iterator TestFaulty "
        "did not return it for "
        "the split validation; it returned: train_op, eval_op\n"
        "  return it from step_op, or leave it out of log_ops: what train ops return is logged "
        "without a log op");
  CHECK(refused("fault: no train_op") ==
        "train/train_op is due, but step_op of the iterator TestFaulty did not return it for the "
        "split train; it returned: log_op, eval_op");
  CHECK(refused("fault: no eval_op") ==
        "validation/eval_op is due, but step_op of the iterator TestFaulty did not return it for "
        "the split validation; it returned: train_op, log_op");
  CHECK(refused("fault: train ops") ==
        "train/train_op is due, but step_op of the iterator TestFaulty did not return it for the "
        "split train; it returned: train_op/generator, train_op/critic, log_op, eval_op\n"
        "  to call those, in this order: train_ops: [train/train_op/generator, "
        "train/train_op/critic]");
  // Where the config names the op, it is the config's mistake.
  CHECK(refused("train_ops: [train/train_opp]") ==
        "test.yaml:9: train_ops/0: train/train_opp is due, but step_op of the iterator TestFaulty "
        "did not return it for the split train; it returned: train_op, log_op, eval_op; did you "
        "mean \"train/train_op\"?");
  CHECK(refused("stages: [{train_ops: [train/train_op], for: 1}, {train_ops: [{op: train/trian_op, "
                "when: 1}]}]") ==
        "test.yaml:9: stages/1/train_ops/0/op: train/trian_op is due, but step_op of the iterator "
        "TestFaulty did not return it for the split train; it returned: train_op, log_op, eval_op; "
        "did you mean \"train/train_op\"?");
  CHECK(refused("log_ops: [validation/train_op]") ==
        "test.yaml:9: log_ops/0: validation/train_op is due, but step_op of the iterator "
        "TestFaulty did not return it for the split validation; it returned: train_op, log_op, "
        "eval_op\n"
        "  return it from step_op, or leave it out of log_ops: what train ops return is logged "
        "without a log op");
  CHECK(refused("evaluations: {test: {eval_op: validation/eval_ops}}") ==
        "test.yaml:9: evaluations/test/eval_op: validation/eval_ops is due, but step_op of the "
        "iterator TestFaulty did not return it for the split validation; it returned: train_op, "
        "log_op, eval_op; did you mean \"validation/eval_op\"?");
  // What is never due need not be there.
  CHECK(refused("fault: no log_op\nlog_ops: []") == "no error");
}

TEST_CASE("a log op that only the default asks for may be missing, which is said") {
  const auto notice = [](const std::string& more) {
    Session session(test_config(kConfig + more), true, false, false);
    session.check();
    return session.notices();
  };
  CHECK(notice("") == "");
  CHECK(notice("log_ops: [train/log_op]") == "");
  CHECK(notice("fault: no log_op") ==
        "step_op returns no train/log_op, validation/log_op; what train ops return, rates and "
        "speed are logged");
  CHECK(notice("log_ops: []") ==
        "log_ops: []: no log op runs; what train ops return, rates and speed are logged");
}

TEST_CASE("numbers of another type than the network's are named with their key") {
  const Session session(test_config(kConfig), true, false, false);
  const Batch batch(
      {{"image", at::zeros({2, 4}, at::kDouble)}, {"class", at::zeros({2}, at::kLong)}}, {},
      {3, 8});
  const auto said = [&](const std::string& message) {
    return batch_mistake_text(message, session.context().networks, "train", batch);
  };
  const std::string remedy =
      "networks compute with float32, as .to(torch::kFloat) in the dataset's get makes it";
  for (const char* message : {"mat1 and mat2 must have the same dtype, but got Double and Float",
                              "expected m1 and m2 to have the same dtype, but got: double != float",
                              "Input type (double) and bias type (float) should be the same",
                              "Found dtype Double but expected Float"}) {
    CAPTURE(message);
    CHECK(said(message) == "\n\"image\" is float64 [2, 4]: " + remedy);
  }
  CHECK(said("mat1 and mat2 must have the same dtype, but got Long and Float") ==
        "\n\"class\" is int64 [2]: " + remedy);
  CHECK(said("mat1 and mat2 must have the same dtype, but got BFloat16 and Float") == "");
}

TEST_CASE("where a GPU says no more than that it failed, the whole numbers of the batch are told") {
  const Batch batch({{"image", at::zeros({2, 4})},
                     {"class", at::tensor({7, 0}, at::kLong)},
                     {"empty", at::zeros({2, 0}, at::kLong)},
                     {"place", at::tensor({-1, 3}, at::kInt)}},
                    {}, {3, 8});
  CHECK(integers_text(batch) == "\nthe batch: \"class\" from 0 to 7, \"place\" from -1 to 3");
  CHECK(integers_text(Batch({{"image", at::zeros({2, 4})}}, {}, {3, 8})) == "");
}

TEST_CASE("what LibTorch says of labels and indices of one's own code gets key and example") {
  const auto has = [](const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  };
  const std::string classes = refused("fault: classes");
  CHECK(classes.starts_with("train/step_op: Target "));
  CHECK(has(classes, " is out of bounds.\n\"class\" of the example "));
  CHECK(has(classes, "of datasets/train is "));
  CHECK(has(classes, "\nclasses count from 0 and are below the number of logits"));
  const std::string type = refused("fault: class type");
  CHECK(has(type, "\nthe batch: \"image\" is float32 [5, "));
  CHECK(has(type, "; labels: classes are int64 [B], as .to(at::kLong) makes them"));
  const std::string index = refused("fault: index");
  CHECK(index.starts_with("train/step_op: index out of range in self\n\"class\" of the example "));
}

TEST_CASE("a log value that is no scalar") {
  CHECK(refused("fault: scalar") ==
        "train/log_op/loss is not a scalar: its shape is [5]; reduce it with mean() or sum()");
  CHECK(refused("fault: undefined scalar") ==
        "train/log_op/loss is an undefined tensor, not a scalar");
}

TEST_CASE("a log image that is no batch of images") {
  const std::string expected =
      "train/log_op/input: expected a batch of images, floats [B, C, H, W], found ";
  CHECK(refused("fault: image") == expected +
                                       "float32 [5, 8, 8, 3]; .permute({0, 3, 1, 2}) moves "
                                       "channels from the last dimension there");
  CHECK(refused("fault: bytes") == expected + "uint8 [1, 3, 8, 8]");
}

TEST_CASE("a log image or text whose key cannot be a file in the run's folder") {
  const std::string rule =
      " cannot be a file: parts of its name, between slashes, have 1 to 200 bytes and are not "
      "\".\" or \"..\"";
  CHECK(refused("fault: image key") == "train/log_op: the image \"../../x\"" + rule);
  CHECK(refused("fault: long key") ==
        "train/log_op: the image \"" + std::string(300, 'x') + "\"" + rule);
  CHECK(refused("fault: text key") == "train/log_op: the text \"a//b\"" + rule);
}

TEST_CASE("an eval_op whose first dimension is not the batch") {
  CHECK(refused("fault: batch") ==
        "validation/eval_op: outputs/logits has first dimension 4, the batch has 5 examples");
  CHECK(refused("fault: number") ==
        "validation/eval_op: labels/loss is a single number, the batch has 5 examples");
}

TEST_CASE("what a user's code throws is told with its op and without a stack trace") {
  CHECK(refused("fault: key") ==
        "train/step_op: the batch has no tensor \"imag\"; there are: image, class, index");
  const std::string shapes = refused("fault: shapes");  // LibTorch 2.15 begins its text with `mm: `
  CHECK(shapes.starts_with("train/step_op: m"));
  CHECK(shapes.ends_with("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"));
  CHECK(refused("fault: log throws") == "train/log_op: no such thing");
}

TEST_CASE("a batch size that is fixed in the code is found by the smaller last batch") {
  const std::string of_epoch = refused("fault: fixed size", kEpoch);
  CHECK(of_epoch.starts_with("train/step_op: shape '[5, -1]' is invalid for input of size "));
  CHECK(
      of_epoch.ends_with("\nwith the last batch of an epoch, which has 2 of 5 examples; "
                         "drop_last: true leaves it out"));
  CHECK(refused("fault: fixed size")
            .ends_with("\nwith the last batch of an evaluation, which has 2 of 5 examples"));
  CHECK(refused("fault: fixed size\ntest_batch_size: 4")
            .starts_with("validation/step_op: shape '[5, -1]' is invalid for input of size "));
  // It is never reached.
  CHECK(refused("fault: fixed size\neval_hook: null\nlog_ops: [train/log_op]") == "no error");
}

TEST_CASE("one example in the last batch is refused for batch normalization") {
  std::string yaml = trainer_config("num_epochs: 1");
  yaml.replace(yaml.find("size: 29"), 8, "size: 25");
  CHECK(message_of([&] { TestRun(yaml).session.check(); }) ==
        "train/step_op: Expected more than 1 value per channel when training, got input size [1, 6]"
        "\nthe batch has 1 example, which gives batch normalization one number for each channel: a "
        "variance takes two. Another batch_size gives more; drop_last: true leaves out a smaller "
        "last batch of an epoch\nwith the last batch of an epoch, which has 1 of 8 examples; "
        "drop_last: true leaves it out");
  CHECK(message_of([&] { TestRun(yaml + "drop_last: true\n").session.check(); }) == "no error");
}

TEST_CASE("a dataset that is empty, or whose first batch cannot be loaded") {
  const auto with = [](const std::string& train, const std::string& validation) {
    return message_of([&] {
      Session session(
          test_config(
              "iterator: TestFaulty\ndevice: cpu\nbatch_size: 5\nnum_steps: 1\ndatasets:\n" +
              ("  train: " + train) + "\n  validation: " + validation + "\n"),
          true, false, false);
      session.check();
    });
  };
  const std::string sound = "{class: Synthetic, size: 12}";
  CHECK(with("{class: TestTorn, size: 0}", sound) ==
        "test.yaml:6: datasets/train: the dataset is empty: it has no example");
  CHECK(with(sound, "{class: TestTorn, size: 0}") ==
        "test.yaml:7: datasets/validation: the dataset is empty: it has no example");
  CHECK(with(sound, "{class: TestTorn, size: 3}") ==
        "datasets/validation: example 0: a.png: cut short");
}

TEST_CASE("what callbacks of classes are given is held against the number of classes") {
  const auto callback = [](const std::string& text) {
    return refused("eval_hook: {eval_callbacks: {a: " + text + "}}");
  };
  CHECK(callback("{class: top_k, k: [1, 3]}") == "no error");
  CHECK(callback("{class: top_k, k: 4}") ==
        "test.yaml:9: eval_hook/eval_callbacks/a/k: expected 1 to 3, the number of classes, found "
        "4");
  CHECK(callback("{class: confusion_matrix, class_names: [a, b]}") ==
        "test.yaml:9: eval_hook/eval_callbacks/a/class_names: expected 3 names, found 2");
  CHECK(callback("{class: classification_report, class_names: [a, b]}").ends_with("found 2"));
  CHECK(callback("{class: confusion_matrix, class_names: [a, b, c]}") == "no error");
  CHECK(
      refused("eval_hook: {eval_callbacks: [3]}")
          .starts_with("test.yaml:9: eval_hook/eval_callbacks: expected callbacks, [accuracy], or "
                       "a map of names and callbacks, such as {accuracy: accuracy}, found [3]"));
}

}  // namespace preflight_test
}  // namespace stepop
