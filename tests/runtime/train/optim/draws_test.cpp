// Optimizers and schedules that are drawn at random, against the PyTorch that is installed.
#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/optim/metric_schedule.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/when/training_length.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/runtime/train/optim/networks.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace draws_test {

using test_networks::config_of;

const SafetensorsFile& draws() {
  static const SafetensorsFile file = [] {
    const ScratchFolder folder;
    run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/train/optim/draws.py"),
               {folder.path("draws.safetensors")});
    return load_safetensors(folder.path("draws.safetensors"));
  }();
  return file;
}

/// The largest difference, in parts of each number, or of 1/1000 of the largest one.
double difference(const at::Tensor& ours, const at::Tensor& theirs) {
  const at::Tensor size = theirs.abs().clamp_min(theirs.abs().max().item<double>() / 1000);
  return (ours - theirs).abs().div(size).max().item<double>();
}

TEST_CASE("optimizers drawn at random change weights as PyTorch's do") {
  int count = 0;
  for (const auto& [name, text] : draws().metadata) {
    if (!name.starts_with("optimizer")) continue;
    ++count;
    INFO(text);
    const auto& of = draws().tensors;
    NamedParameters parameters;
    for (const char* key : {"weight", "bias"}) {
      parameters.emplace_back(key, of.at(name + "/start/" + key).clone().requires_grad_());
    }
    StepClock clock;
    Update update(config_of(text), parameters, clock);
    for (; clock.global_step < of.at(name + "/gradient/bias").size(0); ++clock.global_step) {
      for (auto& [key, tensor] : parameters) {
        const at::Tensor gradient = of.at(name + "/gradient/" + key)[clock.global_step].clone();
        const bool is_absent = gradient.isnan().all().item<bool>();
        tensor.mutable_grad() = is_absent ? at::Tensor() : gradient;
      }
      update.apply();
    }
    for (const auto& [key, tensor] : parameters) {
      CAPTURE(key);
      CHECK(difference(tensor.detach(), of.at(name + "/end/" + key)) < 1e-4);
    }
  }
  CHECK(count == 24);
}

TEST_CASE("schedules drawn at random, also per epoch, have the numbers of PyTorch's") {
  constexpr int64_t kEpoch = 5;
  int count = 0;
  for (const auto& [name, text] : draws().metadata) {
    if (!name.starts_with("schedule")) continue;
    ++count;
    INFO(text);
    const at::Tensor& theirs = draws().tensors.at(name + "/values");
    const LengthScope length([&] { return TrainingLength{kEpoch, theirs.numel() * kEpoch}; });
    const Scheduled ours(config_of("lr: " + text), "lr");
    const int64_t each = text.find("per: epoch") == std::string::npos ? 1 : kEpoch;
    for (int64_t step = 0; step < theirs.numel() * each; ++step) {
      CAPTURE(step);
      CHECK(std::abs(ours.at(step) - theirs[step / each].item<double>()) < 1e-9);
    }
  }
  CHECK(count == 18);
}

TEST_CASE("plateaus drawn at random fall where PyTorch's do") {
  int count = 0;
  for (const auto& [name, text] : draws().metadata) {
    if (!name.starts_with("plateau")) continue;
    ++count;
    INFO(text);
    MetricSchedules plateaus;
    const MetricSchedules::Scope scope(plateaus);
    const Scheduled ours(config_of("lr: " + text), "lr");
    const at::Tensor& metric = draws().tensors.at(name + "/metric");
    for (int64_t step = 0; step < metric.numel(); ++step) {
      plateaus.observe(step, {{"m", metric[step].item<double>()}});
      CAPTURE(step);
      CHECK(ours.at(step) ==
            doctest::Approx(draws().tensors.at(name + "/values")[step].item<double>()));
    }
  }
  CHECK(count == 5);
}

}  // namespace draws_test
}  // namespace stepop
