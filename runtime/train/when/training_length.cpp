#include "runtime/train/when/training_length.h"

#include <fmt/format.h>

#include <utility>

namespace stepop {
namespace {

thread_local LengthScope* scope = nullptr;
thread_local int64_t later = 0;
thread_local CountsEpochs* counts_epochs = nullptr;

}  // namespace

LengthScope::LengthScope(std::function<TrainingLength()> find)
    : find_(std::move(find)), before_(std::exchange(scope, this)) {}

LengthScope::~LengthScope() { scope = before_; }

TrainingLength LengthScope::find(const Config& config, std::string_view path) {
  if (scope == nullptr) {
    throw config.error(path, fmt::format("expected a number of steps, found {}: how long the "
                                         "training is is not known here",
                                         config.peek(path)->describe()));
  }
  if (!scope->found_) scope->found_ = scope->find_();
  return *scope->found_;
}

LaterBegin::LaterBegin(int64_t steps) : steps_(steps) { later += steps; }
LaterBegin::~LaterBegin() { later -= steps_; }

int64_t LaterBegin::steps() { return later; }

CountsEpochs::CountsEpochs(int64_t steps_per_epoch)
    : epoch_(steps_per_epoch), before_(std::exchange(counts_epochs, this)) {}
CountsEpochs::~CountsEpochs() { counts_epochs = before_; }

std::optional<int64_t> CountsEpochs::epoch() {
  return counts_epochs != nullptr ? std::optional(counts_epochs->epoch_) : std::nullopt;
}

void CountsEpochs::note(const Config& config, std::string_view path, int64_t steps) {
  if (counts_epochs == nullptr || steps <= 0 || steps >= counts_epochs->epoch_) return;
  counts_epochs->short_lengths_.push_back({join_path(config.path(), path), steps});
}

}  // namespace stepop
