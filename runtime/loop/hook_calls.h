#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/iterator/context.h"
#include "runtime/iterator/hook.h"
#include "runtime/measure/profile.h"
#include "runtime/step/random_fork.h"

namespace stepop {

/// The hooks of a training, called in the order in which they were added.
class HookCalls {
 public:
  /// Both must outlive this.
  HookCalls(const Context& context, const Position& position)
      : context_(context), position_(position) {}

  /// `hook` must outlive this.
  void add(Hook& hook) { hooks_.push_back(&hook); }

  /// Calls hooks that are a part of the training; `name` begins the message of what one throws that
  /// is no std::exception.
  template <class Call>
  void call(const char* name, const Call& call) {
    const Span span(context_.profile.get(), "hooks");
    for (Hook* hook : hooks_) with_std_exceptions(name, [&] { call(*hook); });
  }

  /// The same for hooks that follow a checkpoint, with generators of their own: a run that resumes
  /// from it calls them again.
  template <class Call>
  void call_forked(const char* name, const Call& call) {
    const auto step = static_cast<uint64_t>(position_.global_step);
    const RandomFork fork(mix_seed({context_.seed, seed_of(name), step}), context_.device);
    this->call(name, call);
  }

 private:
  const Context& context_;
  const Position& position_;
  std::vector<Hook*> hooks_;
};

}  // namespace stepop
