#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/measure/profile.h"
#include "runtime/train/iterator/hook.h"
#include "tests/bench/measure.h"

namespace stepop::bench {

/// The config that a YAML text describes; of the CPU, where the text names no device.
Config config_of(const std::string& yaml);

/// LeNet on 28x28 images, made-up ones by default, with Adam, as a config: what the steps are
/// measured with. Nothing is logged, and no epoch ends while it is measured.
std::string lenet_yaml(int64_t batch_size,
                       const std::string& dataset = "{class: Synthetic, size: 60000}");

/// Trains `steps` steps in a run of its own, from the config to the last checkpoint, as the command
/// line does; its files are gone when it returns. `hook` may watch, and `profile` measure.
void train(const std::string& yaml, int64_t steps, Hook* hook = nullptr,
           std::shared_ptr<Profile> profile = {});

/// As `take_turns`, with `steps` steps of one such training as the first portion: it waits while
/// the others run. No step is begun or ended outside of its time. Fewer rounds when 20 s are over.
std::vector<std::vector<double>> take_turns_with_training(const std::string& yaml, int64_t steps,
                                                          int rounds,
                                                          const std::vector<Portion>& others);

/// The steps of a portion: some 30 ms.
int64_t steps_per_round(int64_t batch_size);

/// A row for each baseline: `times` as `take_turns_with_training` returns them for portions of
/// `steps_per_round` steps, the baselines' names in the same order.
void print_steps(int64_t batch_size, const std::vector<std::vector<double>>& times,
                 const std::vector<std::string>& baselines);

}  // namespace stepop::bench
