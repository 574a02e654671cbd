#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/gate.h"
#include "iterators/extensible/injector.h"
#include "iterators/extensible/loss.h"
#include "iterators/extensible/ports.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"

namespace stepop::extensible {

/// An injector or a loss in its place: when it is on, and what it is connected with.
struct Part {
  std::string name;   ///< `g_fake`
  std::string place;  ///< `configs/a.yaml:12: steps/generator/injectors/g_fake`
  std::string type;
  Gate gate;
  std::vector<Ports::Use> reads;
  std::vector<Ports::Use> writes;
  std::vector<Slot> frees;  ///< What nothing reads after it.
};

struct InjectorPart : Part {
  bool in_training = true;    ///< `eval: true` turns it off,
  bool in_evaluation = true;  ///< `train: true` this.
  bool no_grad = false;
  bool no_accum = false;  ///< For the first part of a batch alone.
  std::unique_ptr<Injector> injector;
};

struct LossPart : Part {
  bool in_evaluation = true;  ///< `train: true` turns it off.
  std::unique_ptr<Scheduled> weight;
  std::string logged_as;  ///< `loss_pix`
  std::unique_ptr<Loss> loss;
};

/// One of `steps`: what is computed, which losses it has, which network they train.
struct Step {
  std::string name;
  std::string place;
  std::string network;  ///< That it trains.
  Gate gate;            ///< Of the whole step; `every`: of its training alone.
  std::vector<Slot> requires_;
  std::optional<std::vector<Slot>> outputs;  ///< Of what it wrote, what later steps see: else all.
  std::vector<InjectorPart> injectors;
  std::vector<LossPart> losses;
  Update* update = nullptr;  ///< Null without `optimizer_params`: it computes, and trains nothing.
  Gate update_gate;          ///< Of `optimizer_params`.
  int64_t trained_from = 0;  ///< `after` of the network.
  std::vector<at::Tensor> others;     ///< The parameters of all other networks.
  std::vector<Slot> hands_on;         ///< What it writes and a later step, or a log, reads.
  std::vector<Slot> keeps_to_itself;  ///< What it writes, and its `outputs` do not name.
  std::string total_logged_as;        ///< `loss_generator_total`

  bool is_on(int64_t iteration) const {
    return iteration >= gate.after && iteration <= gate.before;
  }
  /// Whether an iteration changes the network's weights.
  bool trains_in(int64_t iteration) const {
    return update != nullptr && gate.is_open(iteration) && update_gate.is_open(iteration) &&
           iteration >= trained_from;
  }
};

/// Builds the steps of `steps` in the config, in its order. `keys` gets the names of the state.
/// Throws UsageError, with the place, for what the config gets wrong.
std::vector<Step> build_steps(const Context& context, Keys& keys);

}  // namespace stepop::extensible
