#include "runtime/tools/trial/repeat_check.h"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/text.h"
#include "runtime/data/batch_source.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/when/settings.h"

namespace stepop {
namespace {

constexpr int64_t kSteps = 2;  // an error that one step hides shows in the next

State copy_of(const State& state) {
  State copy;
  for (const auto& [name, tensor] : state) copy.emplace(name, tensor.clone());
  return copy;
}

bool has_same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  return at::equal(a.contiguous().flatten().view(at::kByte),
                   b.contiguous().flatten().view(at::kByte));
}

/// The key of the first tensor or text that differs in two batches; empty if none does.
std::string first_difference(const Batch& one, const Batch& other) {
  if (one.tensors().key_list() != other.tensors().key_list()) return one.tensors().key_list();
  for (const auto& [key, tensor] : one.tensors()) {
    if (!has_same_bits(tensor, other[key])) return key;
  }
  for (const auto& [key, texts] : one.texts()) {
    const auto* again = other.texts().find(key);
    if (again == nullptr || *again != texts) return key;
  }
  return {};
}

/// Throws Error unless a second read gives the same batches for the steps.
void check_data(const Context& context) {
  const BatchOrder& order = context.splits.order("train");
  for (int64_t step = 0; step < kSteps; ++step) {
    const Batch batch = context.splits.batch("train", order, step);
    const std::string key = first_difference(batch, context.splits.batch("train", order, step));
    if (key.empty()) continue;
    throw context.config.error(
        "datasets/train",
        fmt::format("{} of the same examples differs when they are read again: take random numbers "
                    "from the `random` that get receives, and keep no counter in the dataset. A "
                    "run that resumes would differ from one that was never stopped",
                    key));
  }
}

/// Trains with the first batches of the epoch, each as one step.
void train(Session& session) {
  const Context& context = session.context();
  const BatchOrder& order = context.splits.order("train");
  Position& position = session.position();
  StepClock& clock = session.clock();
  std::vector<std::string> train_ops;  // without duplicates, whenever each is due
  for (const auto& due : due_ops(session.settings(), /*train=*/true)) {
    train_ops.insert(train_ops.end(), due.train.begin(), due.train.end());
  }
  for (int64_t step = 0; step < kSteps; ++step) {
    clock.global_step = position.global_step;
    const Batch batch = context.splits.batch("train", order, step);
    const StepOps ops = call_step_op(session.iterator(), context, position, "train", true, batch);
    const SplitGuard guard(position, "train");
    for (const auto& name : train_ops) {
      const TrainOp* op = ops.find_train_op(name);
      if (op == nullptr) throw missing_op(context, "train", name, ops);
      run_op(context, "train", name, *op);
    }
    context.networks.update_averages(position.global_step);
    ++position.global_step;
  }
}

/// Puts the session back to its place, also after an error.
class PlaceGuard {
 public:
  explicit PlaceGuard(Session& session)
      : session_(session), position_(session.position()), clock_(session.clock()) {}
  ~PlaceGuard() {
    session_.position() = position_;
    session_.clock() = clock_;
  }
  PlaceGuard(const PlaceGuard&) = delete;
  PlaceGuard& operator=(const PlaceGuard&) = delete;

 private:
  Session& session_;
  const Position position_;
  const StepClock clock_;
};

State train_from(Session& session, const State& start) {
  const PlaceGuard guard(session);
  session.context().tracker.load(start);
  train(session);
  return copy_of(session.context().tracker.save());
}

/// The names of what differs after the same steps from the same state.
std::vector<std::string> differences_of_repeats(Session& session, const State& start) {
  const State first = train_from(session, start);
  const State second = train_from(session, start);
  session.context().tracker.load(start);
  std::vector<std::string> different;
  for (const auto& [name, tensor] : first) {
    const auto other = second.find(name);
    if (other == second.end() || !has_same_bits(tensor, other->second)) different.push_back(name);
  }
  for (const auto& [name, tensor] : second) {
    if (!first.contains(name)) different.push_back(name);
  }
  return different;
}

/// LibTorch's deterministic algorithms alone: an operation without one is an error.
class Deterministic {
 public:
  Deterministic() {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicCuDNN(true);
  }
  ~Deterministic() {
    at::globalContext().setDeterministicAlgorithms(algorithms_, warns_);
    at::globalContext().setDeterministicCuDNN(cudnn_);
  }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  const bool algorithms_ = at::globalContext().deterministicAlgorithms();
  const bool warns_ = at::globalContext().deterministicAlgorithmsWarnOnly();
  const bool cudnn_ = at::globalContext().deterministicCuDNN();
};

/// The same with deterministic algorithms; nothing where these cannot train the steps.
std::optional<std::vector<std::string>> deterministic_differences(Session& session,
                                                                  const State& start) {
  try {
    const Deterministic deterministic;
    return differences_of_repeats(session, start);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {  // an operation has none, or they need more memory
    return std::nullopt;
  }
}

std::string text_of(const std::vector<std::string>& different, const std::string& why) {
  return fmt::format(
      "two training steps, repeated from the same state, gave different results in {}: {}",
      list_text(different), why);
}

constexpr const char* kUntracked =
    "the iterator keeps something that is not tracked (a counter, an optimizer, a random "
    "generator)";
constexpr const char* kResume = ". A run that resumes will differ from one that was never stopped";

}  // namespace

Repeats check_repeats(Session& session) {
  const Context& context = session.context();
  check_data(context);
  context.networks.start_averages();
  const State start = copy_of(context.tracker.save());
  if (context.device.is_cpu()) {
    const std::vector<std::string> different = differences_of_repeats(session, start);
    if (different.empty()) return {};
    return {text_of(different,
                    std::string(kUntracked) + ", or an operation is not deterministic" + kResume),
            true};
  }
  // First so that no operation can be the cause.
  const auto of_iterator = deterministic_differences(session, start);
  if (of_iterator && !of_iterator->empty()) {
    return {text_of(*of_iterator, kUntracked + std::string(kResume)), true};
  }
  const std::vector<std::string> different = differences_of_repeats(session, start);
  if (different.empty()) return {};
  if (of_iterator) {
    return {text_of(different,
                    "an operation of LibTorch adds in another order each time. With "
                    "deterministic: true a run that resumes has the bits of one that was never "
                    "stopped, without it the same numbers but for rounding")};
  }
  return {text_of(different, std::string(kUntracked) +
                                 ", or an operation is not deterministic; deterministic: true "
                                 "says which" +
                                 kResume)};
}

}  // namespace stepop
