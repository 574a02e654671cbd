#include "runtime/train/run/provenance.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "runtime/train/run/device.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace provenance_test {

std::string with(const char* key, const nlohmann::json& value) {
  auto json = nlohmann::json::parse(build_info(c10::kCPU));
  json[key] = value;
  return json.dump();
}

TEST_CASE("what a run was on and this start is not is told, with what that means") {
  const std::string now = build_info(c10::kCPU);
  const std::string threads = std::to_string(at::get_num_threads());
  const std::string end = ": the bits may differ from those of an undisturbed run";
  CHECK(describe_change_of_machine(now, now) == "");
  CHECK(describe_change_of_machine(with("threads", 1), with("threads", 2)) ==
        "the run was on 1 thread, this start has 2 threads" + end);
  CHECK(describe_change_of_machine(with("device", "cuda"), now) ==
        "the run was on device cuda, this start has device cpu" + end);
  const std::string other = describe_change_of_machine(
      R"({"LibTorch": "2.12.0", "oneDNN": "neither", "build": "yesterday", "gone": 1})", now);
  CHECK(
      other.starts_with("the run was on a build of yesterday, LibTorch 2.12.0, oneDNN neither, "
                        "this start has a build of 20"));
}

TEST_CASE("a checkpoint from before it was kept, or one that says what nobody knows, differs not") {
  const std::string now = build_info(c10::kCPU);
  for (const char* before : {"", "{}", "[1]", "{", R"({"weather": "fair"})"}) {
    CHECK(describe_change_of_machine(before, now) == "");
  }
}

TEST_CASE("a checkpoint says what it was made by") {
  TestRun run(trainer_config("num_steps: 1\ndevice: cpu"));
  run.train();
  const std::string kept = load_checkpoint(run.checkpoint_path(1)).made_by;
  CHECK(kept == build_info(c10::kCPU));
  CHECK(nlohmann::json::parse(kept)["threads"] == 1);
}

TEST_CASE("deterministic asks LibTorch for the algorithms that are") {
  const bool before = at::globalContext().deterministicAlgorithms();
  Session(test_config(trainer_config("num_steps: 1\ndeterministic: true")), true, false, false);
  CHECK(at::globalContext().deterministicAlgorithms());
  CHECK(at::globalContext().deterministicCuDNN());
  Session(test_config(trainer_config("num_steps: 1\ndeterministic: false")), true, false, false);
  CHECK_FALSE(at::globalContext().deterministicAlgorithms());
  at::globalContext().setDeterministicAlgorithms(before, false);
}

TEST_CASE("how exactly a GPU multiplies and how cuDNN chooses are taken from the config") {
  const bool benchmark = at::globalContext().benchmarkCuDNN();
  apply_backend_settings(test_config("{matmul_precision: high, cudnn_benchmark: true}"));
  CHECK((at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH));
  CHECK(at::globalContext().benchmarkCuDNN());
  apply_backend_settings(test_config("{}"));  // what the config does not name stays
  CHECK(at::globalContext().benchmarkCuDNN());
  CHECK(message_of([] { apply_backend_settings(test_config("matmul_precision: tf32")); }) ==
        "test.yaml:1: matmul_precision: expected highest, high or medium, found \"tf32\"");
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setBenchmarkCuDNN(benchmark);
}

}  // namespace provenance_test
}  // namespace stepop
