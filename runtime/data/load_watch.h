#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

namespace stepop {

/// What a thread loads and since when, for another thread that waits for it. `load_batch` and
/// streams say it to the watch of their thread.
class LoadWatch {
 public:
  /// During its lifetime, `watch` is that of this thread; null for none.
  class Scope {
   public:
    explicit Scope(LoadWatch* watch);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    /// The watch before; what a dataset loads within an example is not said to it.
    LoadWatch* outer() const { return outer_; }

   private:
    LoadWatch* outer_;
  };

  /// The thread loads `what` from now on: `example 17`.
  void begin(std::string what);
  /// The thread loads nothing from now on.
  void end();
  /// What has been loading for more than `seconds`; null for nothing.
  std::optional<std::string> overdue(double seconds) const;

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> what_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace stepop
