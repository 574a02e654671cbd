#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/measure/profile.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/networks/sync_batch_norm.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/random_fork.h"

namespace stepop {

/// Calls the hooks of a training in the order in which they were added, and collects their
/// requests.
class HookCalls {
 public:
  /// Both must outlive this.
  HookCalls(const Context& context, const Position& position)
      : context_(context), position_(position) {}

  /// `hook` must outlive this. With `is_of_config`, an error in the hook says where it arose:
  /// `hooks/<name>/after_step: ...`.
  void add(std::string name, Hook& hook, bool is_of_config = false) {
    hooks_.push_back({std::move(name), &hook, is_of_config});
  }

  /// Calls hooks that are a part of the training. `name` begins the message for an exception that
  /// is no std::exception.
  template <class Call>
  void call(const char* name, const Call& call) {
    const Span span(context_.profile.get(), "hooks");
    const SyncBatchNorm::Scope sync(context_.sync_batch_norm);
    for (const Named& named : hooks_) {
      if (named.is_of_config) {
        run_at("hooks/" + named.name, name, [&] { call(*named.hook); });
      } else {
        with_std_exceptions(name, [&] { call(*named.hook); });
      }
      take_requests(named);
    }
  }

  /// The same for hooks after a checkpoint, with separate random generators: a run that resumes
  /// from the checkpoint calls these hooks again.
  template <class Call>
  void call_forked(const char* name, const Call& call) {
    const auto step = static_cast<uint64_t>(position_.global_step);
    const RandomFork fork(mix_seed({context_.seed, seed_of(name), step}), context_.device);
    this->call(name, call);
  }

  // Whether a hook asked for a log since the last call of this function.
  bool take_log() { return std::exchange(requests_.log, false); }
  bool take_checkpoint() { return std::exchange(requests_.checkpoint, false); }
  bool take_evaluation() { return std::exchange(requests_.evaluation, false); }
  /// The hook that asked for a stop, and its reason; empty without such a request.
  std::string take_stop() { return std::exchange(requests_.stop, ""); }

 private:
  struct Named {
    std::string name;
    Hook* hook;
    bool is_of_config;
  };

  void take_requests(const Named& named) {
    Hook::Requests& asked = named.hook->requests_;
    requests_.log |= std::exchange(asked.log, false);
    requests_.checkpoint |= std::exchange(asked.checkpoint, false);
    requests_.evaluation |= std::exchange(asked.evaluation, false);
    if (asked.stop.empty()) return;
    const std::string reason = std::exchange(asked.stop, "");
    if (requests_.stop.empty()) requests_.stop = "the hook " + named.name + ": " + reason;
  }

  const Context& context_;
  const Position& position_;
  std::vector<Named> hooks_;
  Hook::Requests requests_;
};

}  // namespace stepop
