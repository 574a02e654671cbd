#pragma once

#include <cstdint>
#include <string>

namespace stepop {

/// While it lives, a fatal signal (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) writes a message to
/// the standard error before it ends the process as it would have:
///
///     stepop: SIGSEGV in train_op on the split train, after step 12, with the examples 7, 3, 11
///     in your own code, the innermost function first:
///     DenoiserNetwork::forward(at::Tensor const&) at /home/ada/denoiser.cpp:31
///     <the remedy>
///
/// An `exit()` that is called meanwhile, by any code, ends in the same message and a status other
/// than 0: `stepop: exit(0) was called in train_op on the split train, after step 12`.
///
/// The handler has a stack of its own, so that it also works where recursion without end has used
/// up the other one, and calls nothing that a signal handler must not. Where another handler is
/// there, such as a sanitizer's, it stays. Of several the newest has the word. Made and destroyed
/// by the main thread.
class CrashMessage {
 public:
  /// `happened` is what the message says: `denoiser.cpp crashed while it was loaded`. When it is
  /// empty: the name of the signal, with step and split once they are set.
  explicit CrashMessage(std::string happened = "");
  ~CrashMessage();
  CrashMessage(const CrashMessage&) = delete;
  CrashMessage& operator=(const CrashMessage&) = delete;

  /// Where the training is; both are read when it crashes, and must outlive this.
  void set_place(const int64_t& global_step, const std::string& split);
  /// Lines that say what to do.
  void set_remedy(std::string text);

 private:
  friend struct CrashHandler;

  std::string happened_;
  std::string remedy_;
  const int64_t* global_step_ = nullptr;
  const std::string* split_ = nullptr;
  CrashMessage* before_;
};

}  // namespace stepop
