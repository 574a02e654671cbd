#include "runtime/data/load_watch.h"

#include <utility>

namespace stepop {
namespace {

thread_local LoadWatch* watch_of_thread = nullptr;

}  // namespace

LoadWatch::Scope::Scope(LoadWatch* watch) : outer_(std::exchange(watch_of_thread, watch)) {}

LoadWatch::Scope::~Scope() { watch_of_thread = outer_; }

void LoadWatch::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  since_ = std::chrono::steady_clock::now();
}

void LoadWatch::end() {
  const std::lock_guard lock(mutex_);
  what_.reset();
}

std::optional<std::string> LoadWatch::overdue(double seconds) const {
  const std::lock_guard lock(mutex_);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - since_;
  return what_ && passed.count() > seconds ? what_ : std::nullopt;
}

}  // namespace stepop
