#pragma once

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
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
#include "runtime/train/when/trigger.h"

namespace stepop {

/// Calls the hooks of a training in the order in which they were added, and collects their
/// requests.
class HookCalls {
 public:
  /// Both must outlive this.
  HookCalls(const Context& context, const Position& position)
      : context_(context), position_(position) {}

  /// `hook` must outlive this. With `is_of_config`, an error in the hook says where it arose:
  /// `hooks/<name>/after_step: ...`. `when`: the steps in which it gets the calls of a step;
  /// nothing for all.
  void add(std::string name, Hook& hook, bool is_of_config = false,
           std::optional<Trigger> when = {}) {
    hooks_.push_back({std::move(name), &hook, is_of_config, std::move(when)});
  }

  /// Called before each step from `before` to `after`.
  void begin_step(const Elapsed& before, const Elapsed& after) {
    for (Named& named : hooks_) {
      named.is_due = !named.when || named.when->is_due(before, after) ||
                     (before.step == 0 && named.when->at_start());
    }
  }

  /// Calls hooks that are a part of the training. `name` begins the message for an exception that
  /// is no std::exception.
  template <class Call>
  void call(const char* name, const Call& call) {
    const Span span(context_.profile.get(), "hooks");
    const SyncBatchNorm::Scope sync(context_.sync_batch_norm);
    for (const Named& named : hooks_) call_one(named, name, call);
  }

  /// The same for calls of a step, which hooks with a trigger get when it is due.
  template <class Call>
  void call_in_step(const char* name, const Call& call) {
    const Span span(context_.profile.get(), "hooks");
    const SyncBatchNorm::Scope sync(context_.sync_batch_norm);
    for (const Named& named : hooks_) {
      if (named.is_due) call_one(named, name, call);
    }
  }

  /// What hooks of the config add to a log, by `hooks/<name>`; without gradients, and with random
  /// generators of their own.
  OrderedMap<Logs> logs() {
    OrderedMap<Logs> all;
    if (!std::ranges::any_of(hooks_, &Named::is_of_config)) return all;
    const at::NoGradGuard no_grad;
    call_forked("log", [&](Hook& hook) {
      const auto named = std::ranges::find(hooks_, &hook, &Named::hook);
      if (named->is_of_config) all.set("hooks/" + named->name, hook.log(position_.global_step));
    });
    return all;
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
  /// The same of a rewind.
  std::string take_rewind() { return std::exchange(requests_.rewind, ""); }

 private:
  struct Named {
    std::string name;
    Hook* hook;
    bool is_of_config;
    std::optional<Trigger> when;
    bool is_due = true;
  };

  template <class Call>
  void call_one(const Named& named, const char* name, const Call& call) {
    if (named.is_of_config) {
      run_at("hooks/" + named.name, name, [&] { call(*named.hook); });
    } else {
      with_std_exceptions(name, [&] { call(*named.hook); });
    }
    take_requests(named);
  }

  void take_requests(const Named& named) {
    Hook::Requests& asked = named.hook->requests_;
    requests_.log |= std::exchange(asked.log, false);
    requests_.checkpoint |= std::exchange(asked.checkpoint, false);
    requests_.evaluation |= std::exchange(asked.evaluation, false);
    take_reason(named, asked.stop, requests_.stop);
    take_reason(named, asked.rewind, requests_.rewind);
  }

  /// The first hook counts.
  static void take_reason(const Named& named, std::string& asked, std::string& taken) {
    const std::string reason = std::exchange(asked, "");
    if (!reason.empty() && taken.empty()) taken = "the hook " + named.name + ": " + reason;
  }

  const Context& context_;
  const Position& position_;
  std::vector<Named> hooks_;
  Hook::Requests requests_;
};

}  // namespace stepop
