// Pictures of logs are written behind the loop: what a user sees of that.
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>

#include "runtime/core/pictures/image_file.h"
#include "tests/cli/digits_run.h"
#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace log_pictures_test {

namespace fs = std::filesystem;

const std::string kEachStep = "\nlog_ops: [{op: train/log_op, when: 1}]\n";

std::string picture(const TestRun& run, int64_t step) {
  return run.root() + "/train/train/log_op/" + picture_file("noise", step, "");
}

TEST_CASE("a checkpoint comes after the pictures of all logs before it") {
  class Look : public Hook {
   public:
    explicit Look(const TestRun& run) : run_(run) {}
    void after_step(int64_t step) override { steps_ = step; }
    void after_checkpoint(const std::string&) override {
      ++checkpoints;
      for (int64_t step = 1; step <= steps_; ++step) CHECK(fs::exists(picture(run_, step)));
    }
    int checkpoints = 0;

   private:
    const TestRun& run_;
    int64_t steps_ = 0;
  };
  TestRun run(trainer_config("num_steps: 8\nckpt_freq: 3" + kEachStep));
  Look look(run);
  run.train({&look});
  CHECK(look.checkpoints == 4);
}

TEST_CASE("a training that was stopped has the pictures of one that was not") {
  TestRun whole(trainer_config("num_steps: 8" + kEachStep));
  whole.train();
  TestRun before(trainer_config("num_steps: 5" + kEachStep));
  before.train();
  TestRun after(trainer_config("num_steps: 8" + kEachStep), before, 5);
  after.train();
  for (int64_t step = 1; step <= 8; ++step) {
    CAPTURE(step);
    CHECK(read_bytes(picture(after, step)) == read_bytes(picture(whole, step)));
  }
}

TEST_CASE("a full disk under a picture ends the training before its next checkpoint") {
  TestRun run(trainer_config("num_steps: 8\neval_hook: null" + kEachStep));
  std::string message;
  {
    FailingFiles files;
    // Step 1 opens the temporary file of its picture after the metrics file was opened.
    class Full : public Hook {
     public:
      explicit Full(FailingFiles& files) : files_(files) {}
      void after_step(int64_t step) override {
        if (step == 1) files_.fail_from(FileCall::kRename, 1, ENOSPC);
      }

     private:
      FailingFiles& files_;
    };
    Full full(files);
    message = message_of([&] { run.train({&full}); });
  }
  CHECK(message.starts_with("cannot rename " + run.root() + "/train/train/log_op/noise_"));
  CHECK(message.ends_with(": No space left on device"));
  CHECK(run.checkpoints().empty());
}

TEST_CASE("how images become files is said for all ops, or for one") {
  const std::string ops =
      "\nlog_ops: [{op: train/log_op, when: 2}, {op: validation/sample_op, "
      "images: {format: jpeg, quality: 80}}]\nlog_freq: 2\nstart_log_freq: 2\n";
  const auto files = [](const std::string& more) {
    TestRun run(trainer_config("num_steps: 2" + more));
    run.train();
    std::vector<std::string> names;
    for (const auto& name : files_below(run.root() + "/train")) {
      if (is_image_ending(fs::path(name).extension().string())) names.push_back(name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(files(ops) ==
        Names{"train/log_op/noise_0000002.png", "validation/sample_op/noise_0000002.jpg"});
  CHECK(files(ops + "log_images: {format: jpeg}\n") ==
        Names{"train/log_op/noise_0000002.jpg", "validation/sample_op/noise_0000002.jpg"});
}

TEST_CASE("pictures never change the training") {
  const auto trained = [](const std::string& more) {
    TestRun run(trainer_config("num_steps: 9" + more));
    run.train();
    return run.checkpoint(9);
  };
  CHECK(differences(trained(kEachStep + "train_ops: [train/train_op]"), trained(kEachStep)) == "");
  CHECK(differences(trained(kEachStep + "log_images: {format: jpeg}"), trained(kEachStep)) == "");
}

TEST_CASE("what no image format is, is told with its place") {
  const auto refused = [](const std::string& more) {
    return message_of([&] { TestRun(trainer_config("num_steps: 1\n" + more)); });
  };
  CHECK(refused("log_images: jpeg") ==
        "test.yaml:13: log_images: expected a map such as {format: jpeg, quality: 90}, found "
        "\"jpeg\"");
  CHECK(refused("log_images: {format: jpg}") ==
        "test.yaml:13: log_images/format: expected png or jpeg, found \"jpg\"");
  CHECK(refused("log_images: {quality: 101}").starts_with("test.yaml:13: log_images/quality: "));
  CHECK(refused("log_images: {qualty: 10}").find("did you mean \"log_images/quality\"?") !=
        std::string::npos);
  CHECK(refused("log_ops: [{op: train/log_op, images: {format: gif}}]") ==
        "test.yaml:13: log_ops/0/images/format: expected png or jpeg, found \"gif\"");
}

}  // namespace log_pictures_test
}  // namespace stepop
