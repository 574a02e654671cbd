// Training steps of Pix2Pix against the same training in PyTorch, and what recording its losses
// costs.
#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "iterators/losses/loss_manager.h"
#include "runtime/train/session/session.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {
namespace {

/// The sizes of a config in configs/pix2pix.
struct Case {
  std::string name;
  int64_t size, features, n_downs, n_dropouts, base_channels, n_layers, batch_size, steps;
};

const std::vector<Case> kCases = {{"small, 64x64, batch 4", 64, 24, 3, 0, 24, 2, 4, 4},
                                  {"base, 256x256, batch 1", 256, 64, 6, 3, 64, 3, 1, 1}};

std::string yaml_of(const Case& c) {
  return fmt::format(R"(
iterator: Pix2Pix
networks:
  generator: {{class: UnetGenerator, features: {1}, n_downs: {2}, use_dropout_layers: {3}}}
  discriminator: {{class: PatchGan, base_channels: {4}, n_layers: {5}}}
generator_optimizer: {{class: Adam, lr: 2e-4, betas: [0.5, 0.999]}}
train_ops: [train/train_op/discriminator, train/train_op/generator]
datasets: {{train: {{class: Facades, size: {0}}}}}
batch_size: {6}
log_ops: []
)",
                     c.size, c.features, c.n_downs, c.n_dropouts, c.base_channels, c.n_layers,
                     c.batch_size);
}

void compare(const Case& c, int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"PyTorch, Adam", "adam"},
      {"PyTorch, Adam(fused=True)", "fused"},
      {"PyTorch, fused, D frozen in G's step", "fused+frozen"}};
  for (const auto& [name, kind] : kinds) {
    std::vector<std::string> words = {python(), "-B",
                                      STEPOP_SOURCE_DIR "/tests/bench/pytorch_pix2pix.py",
                                      std::to_string(threads)};
    for (const int64_t number :
         {c.size, c.features, c.n_downs, c.n_dropouts, c.base_channels, c.n_layers, c.batch_size}) {
      words.push_back(std::to_string(number));
    }
    Process process(words, ".");
    const Portion other = [&] { return process.ask_seconds(fmt::format("{} {}", kind, c.steps)); };
    const auto times =
        take_turns_with_training(yaml_of(c) + fmt::format("num_threads: {}\n", threads), c.steps,
                                 /*rounds=*/30, {other});
    const auto text = [&](size_t i) {
      return fmt::format("{:.1f} ms", 1e3 * median(times[i]) / static_cast<double>(c.steps));
    };
    print_row({fmt::format("{}, {} thread{}", c.name, threads, threads == 1 ? "" : "s"), name,
               speedup(times[0], times[1]), text(0), text(1)});
  }
  at::set_num_threads(before);
}

/// Seconds that a loss takes, with the newest `history` values kept, or without a record.
double seconds_of_loss(int64_t history) {
  constexpr int kLosses = 20000;
  Session session(config_of(lenet_yaml(4) + "num_steps: 1\nlosses: {l1: {loss: l1, weight: 1}}\n"),
                  /*train=*/true, /*debug=*/false, /*allow_unknown=*/true);
  losses::LossManager losses(session.context(), "losses", {}, history);
  const at::Tensor a = at::rand({1, 4});
  const at::Tensor b = at::rand({1, 4});
  const Stopwatch watch;
  for (int i = 0; i < kLosses; ++i) losses("l1", a, b);
  return watch.seconds() / kLosses;
}

void measure_recording() {
  std::vector<double> with, without;
  for (int round = 0; round < 11; ++round) {
    with.push_back(seconds_of_loss(losses::LossManager::kHistory));
    without.push_back(seconds_of_loss(0));
  }
  print_row({"a loss of four numbers, recorded", "not recorded", median(without) / median(with),
             fmt::format("{:.2f} us", 1e6 * median(with)),
             fmt::format("{:.2f} us", 1e6 * median(without))});
}

}  // namespace

void bench_pix2pix() {
  print_header("Training steps: pix2pix, Adam; against PyTorch in Python");
  for (const Case& c : kCases) {
    for (const int threads : {1, 2}) compare(c, threads);
  }
  measure_recording();
}

}  // namespace stepop::bench
