#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace stepop::extensible_two_steps {

/// Two networks from x, [4], to [2].
inline constexpr const char* kBase = R"(
iterator: ExtensibleTrainer
num_threads: 1
batch_size: 4
log_freq: 1000
seed: 3
datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [4], y: [2]}}}
networks:
  a: {class: MLP, inputs: 4, hidden: [6], classes: 2}
  b: {class: MLP, inputs: 2, hidden: [6], classes: 2}
)";

inline std::string config(const std::string& steps, int64_t num_steps = 10) {
  return fmt::format("{}num_steps: {}\n{}", kBase, num_steps, steps);
}

/// Networks a and b, one trained by each step; `of_second`: further keys of the second.
inline constexpr const char* kTwoSteps = R"(
steps:
  first:
    training: a
    optimizer_params: {lr: 0.05}
    injectors: {made: {type: generator, generator: a, in: x, out: made}}
    losses: {p: {type: pix, criterion: l2, real: y, fake: made, weight: 1}}
  second:
    training: b
    FIRST
    optimizer_params: {lr: 0.05}
    injectors: {of_b: {type: generator, generator: b, in: made, out: of_b}}
    losses: {q: {type: pix, criterion: l2, real: y, fake: of_b, weight: 1}}
)";

inline std::string two_steps(const std::string& of_second) {
  std::string text = kTwoSteps;
  return text.replace(text.find("FIRST"), 5, of_second);
}

}  // namespace stepop::extensible_two_steps
