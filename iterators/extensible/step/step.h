#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/step/gate.h"
#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/loss.h"
#include "iterators/extensible/step/ports.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"

namespace stepop::extensible {

/// An injector or a loss in its place: when it is on, and the keys that it reads and writes.
struct Part {
  std::string name;   ///< `g_fake`
  std::string place;  ///< `configs/a.yaml:12: steps/generator/injectors/g_fake`
  std::string type;
  Gate gate;
  std::vector<Ports::Use> reads;
  std::vector<Ports::Use> writes;
  std::vector<Slot> frees;    ///< The keys that nothing reads after this part.
  bool in_training = true;    ///< `eval: true` turns it off,
  bool in_evaluation = true;  ///< `train: true` turns it off.

  bool is_for(bool is_training) const { return is_training ? in_training : in_evaluation; }
};

struct InjectorPart : Part {
  bool no_grad = false;
  bool no_accum = false;  ///< Runs for the first part of a batch only.
  std::unique_ptr<Injector> injector;
};

struct LossPart : Part {
  std::unique_ptr<Scheduled> weight;
  std::string logged_as;  ///< `loss_pix`
  std::unique_ptr<Loss> loss;
};

/// An entry of `steps`: the injectors, the losses, and the network that they train.
struct Step {
  std::string name;
  std::string place;
  std::string network;  ///< The network that the step trains.
  Gate gate;            ///< For the whole step; `every`: for its training only.
  std::vector<Slot> requires_;
  std::optional<std::vector<Slot>> outputs;  ///< The keys that later steps see; without: all.
  std::vector<InjectorPart> injectors;
  std::vector<LossPart> losses;
  Update* update = nullptr;           ///< Null without `optimizer_params`: the step trains nothing.
  Gate update_gate;                   ///< The gate of `optimizer_params`.
  int64_t trained_from = 0;           ///< The network's `after`.
  std::vector<at::Tensor> others;     ///< The parameters of all other networks.
  std::vector<Slot> hands_on;         ///< Written keys that a later step or a log reads.
  std::vector<Slot> keeps_to_itself;  ///< Written keys that `outputs` does not name.
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

/// Builds the steps of `steps` in the config's order. `keys` gets the names of the state. Throws
/// UsageError, with the place, for mistakes in the config.
std::vector<Step> build_steps(const Context& context, Keys& keys);

}  // namespace stepop::extensible
