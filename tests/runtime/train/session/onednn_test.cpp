#include <ATen/Context.h>
#include <doctest/doctest.h>

#include "runtime/train/session/session.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace onednn_test {

std::string config_of(int batch_size, const std::string& more = "") {
  return "iterator: Classifier\nmodel: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n"
         "optimizer: SGD\ndatasets: {train: {class: Synthetic, shape: [1, 8, 8], size: 32}}\n"
         "num_epochs: 1\nn_data_processes: 0\nnum_threads: 1\nbatch_size: " +
         std::to_string(batch_size) + "\n" + more + "\n";
}

Session session_of(const std::string& yaml, bool train = true) {
  return {test_config(yaml), train, /*debug=*/false, /*allow_unknown=*/false};
}

bool is_on() { return at::globalContext().userEnabledMkldnn(); }

/// Whether oneDNN is on after the check of a training that begins.
bool chooses(const std::string& yaml) {
  Session session = session_of(yaml);
  session.check();
  return is_on();
}

/// Where LibTorch multiplies without MKL, as on aarch64, nothing was measured, and all is oneDNN's.
bool keeps_onednn() { return !at::globalContext().hasMKL(); }

bool is_in(const std::string& part, const std::string& text) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("small convolutions are computed without oneDNN, unless the config says otherwise") {
  if (keeps_onednn()) {
    CHECK(chooses(config_of(4)));
    return;
  }
  CHECK(!chooses(config_of(4)));
  CHECK(chooses(config_of(16)));
  CHECK(chooses(config_of(4, "onednn: true")));
  CHECK(chooses(config_of(4, "precision: bfloat16")));
  CHECK(chooses(config_of(4, "channels_last: true")));
  CHECK(!chooses(config_of(4, "onednn: auto")));
  CHECK(!chooses(config_of(32, "onednn: false")));
  // An evaluation's batches count, too.
  CHECK(chooses(config_of(4, "test_batch_size: 16\neval_hook: {eval_op: train/eval_op}")));
  CHECK(message_of([] { session_of(config_of(4, "onednn: fast")); }) ==
        "test.yaml:9: onednn: expected auto, true or false, found \"fast\"");
}

TEST_CASE("what was chosen is said, and is in the saved config and in what the bits depend on") {
  if (keeps_onednn()) return;
  Session session = session_of(config_of(4));
  CHECK(is_in(R"("oneDNN":"on")", session.made_by()));
  session.check();
  CHECK(session.notices() ==
        "onednn: false, as small convolutions are faster without it: here 96,000 multiplications "
        "on average; the run keeps it");
  CHECK(is_in("onednn: false", session.config_yaml()));
  CHECK(is_in(R"("oneDNN":"off")", session.made_by()));
  Session large = session_of(config_of(16));
  large.check();
  CHECK(large.notices() == "");
  CHECK(!is_in("onednn", large.config_yaml()));
}

TEST_CASE("oneDNN that is off for batches that need it is said") {
  const auto notices = [](int batch_size) {
    Session session = session_of(config_of(batch_size, "onednn: false"));
    session.check();
    return session.notices();
  };
  CHECK(notices(4) == "");
  CHECK(notices(16) ==
        "onednn: false, with which convolutions of 16 examples at a time are up to three times "
        "slower here: --onednn auto chooses anew");
}

TEST_CASE("a resume and an evaluation keep what the run began with") {
  if (keeps_onednn()) return;
  const auto resumed = [](const std::string& before, const std::string& now, bool train = true) {
    TestRun run(before);
    run.session.check();
    const Checkpoint checkpoint = run.session.checkpoint();
    Session session = session_of(now, train);
    if (train) {
      session.resume(checkpoint, "a");
    } else {
      session.restore_for_evaluation(checkpoint, "a");
    }
    session.check();
    CHECK(is_in(is_on() ? R"("oneDNN":"on")" : R"("oneDNN":"off")", session.made_by()));
    return is_on();
  };
  CHECK(!resumed(config_of(4), config_of(4)));
  CHECK(!resumed(config_of(4), config_of(16)));
  CHECK(resumed(config_of(16), config_of(4)));
  CHECK(resumed(config_of(4), config_of(4, "onednn: true")));
  CHECK(!resumed(config_of(4), config_of(4), /*train=*/false));
  // A run of before made no choice.
  TestRun old(config_of(4));
  Checkpoint checkpoint = old.session.checkpoint();
  Session session = session_of(config_of(4));
  session.resume(checkpoint, "a");
  session.check();
  CHECK(is_on());
  CHECK(session.notices() == "");
}

}  // namespace onednn_test
}  // namespace stepop
