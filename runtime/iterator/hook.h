#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace stepop {

/// Observes a training. The order of all calls is pinned in tests/runtime/loop/order_test.cpp.
/// An exception that a hook throws ends the training as any other.
///
/// What a hook changes of what is tracked survives a kill: hooks up to `after_epoch` are parts of
/// the training, so their results are in the checkpoint that follows. The three that follow a
/// checkpoint, `after_checkpoint`, `before_evaluation` and `after_evaluation`, are called again by
/// a run that resumes from that checkpoint, with the state that they found at first. How often one
/// saves and evaluates changes no training: in these three, LibTorch's random generators are
/// forked, as in logs.
class Hook {
 public:
  virtual ~Hook() = default;
  /// `epoch` counts from 0.
  virtual void before_epoch(int64_t epoch) { (void)epoch; }
  /// `step` is the number of complete steps: N - 1 before the N-th step, N after it.
  virtual void before_step(int64_t step) { (void)step; }
  virtual void after_step(int64_t step) { (void)step; }
  virtual void after_epoch(int64_t epoch) { (void)epoch; }
  /// The tensors are copied; the file `path` is written in the background, and is there before an
  /// evaluation of these weights begins.
  virtual void after_checkpoint(const std::string& path) { (void)path; }
  virtual void before_evaluation(int64_t step) { (void)step; }
  virtual void after_evaluation(int64_t step) { (void)step; }
  /// The training ends by `error`, which is thrown on after this returns.
  virtual void at_exception(const std::exception& error) { (void)error; }
};

}  // namespace stepop
