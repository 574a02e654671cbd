#pragma once

#include <cstdint>
#include <string>

namespace stepop {

/// During its lifetime, a fatal signal (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) writes a message
/// to the standard error before it ends the process as usual:
///
///     stepop: SIGSEGV in train_op on the split train, after step 12, with the examples 7, 3, 11
///     in your own code, the innermost function first:
///       /home/ada/denoiser.cpp:31: in DenoiserNetwork::forward
///     <the remedy>
///
/// A SIGINT that a SignalGuard takes is answered on the standard error, once the place is set: the
/// first one says what is still to end, and the second one, which ends the process, where it was:
///
///     SIGINT: finishing step 13 (in step_op for 600 s); once more ends at once
///     SIGINT again: ended in step_op on the split train, after step 12, with the examples 7, 3
///     in your own code, the innermost function first: ...
///
/// An `exit()` call by any code in this time ends with the same message and a status other than 0:
/// `stepop: exit(0) was called in train_op on the split train, after step 12`.
///
/// The handler has its own stack, so that it also works after endless recursion has used up the
/// other stack, and it only calls functions that are allowed in a signal handler. An existing
/// handler, such as a sanitizer's, stays. If there are several messages, the newest is used. The
/// main thread must make and destroy it.
class CrashMessage {
 public:
  /// `happened` is the message's first line: `denoiser.cpp crashed while it was loaded`. If it is
  /// empty, the line is the name of the signal, with step and split once they are set.
  explicit CrashMessage(std::string happened = "");
  ~CrashMessage();
  CrashMessage(const CrashMessage&) = delete;
  CrashMessage& operator=(const CrashMessage&) = delete;

  /// The training's place; both values are read at the crash, and must outlive this. With
  /// `answers`, a SIGINT is answered: one of several processes should do that. `work`: what a
  /// SIGINT ends, where that is no training: `the check`.
  void set_place(const int64_t& global_step, const std::string& split, bool answers = true,
                 std::string work = "");
  /// Lines with advice for the user.
  void set_remedy(std::string text);

 private:
  friend struct CrashHandler;

  std::string happened_;
  std::string remedy_;
  const int64_t* global_step_ = nullptr;
  const std::string* split_ = nullptr;
  bool answers_ = false;
  std::string work_;
  CrashMessage* before_;
};

}  // namespace stepop
