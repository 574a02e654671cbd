#include "tests/bench/device_waits.h"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace stepop::bench {
namespace {

thread_local std::vector<std::string> ops;

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction& op) {
  ops.emplace_back(op.name());
  return nullptr;
}

void end_op(const at::RecordFunction& /*op*/, at::ObserverContext* /*context*/) {
  if (!ops.empty()) ops.pop_back();
}

/// c10::cuda::warning_state(), whose header needs a CUDA toolkit: 1 is "warn".
int* sync_debug_mode() {
  return static_cast<int*>(
      ::dlsym(RTLD_DEFAULT, "_ZZN3c104cuda13warning_stateEvE14warning_state_"));
}

}  // namespace

class DeviceWaits::Handler : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("synchronizing CUDA operation") == std::string::npos) {
      return c10::WarningHandler::process(warning);
    }
    ++waits_[ops.empty() ? "a wait of ours" : fmt::format("{}", fmt::join(ops, " > "))];
  }

  std::map<std::string, int64_t> take() { return std::exchange(waits_, {}); }

 private:
  std::map<std::string, int64_t> waits_;
};

DeviceWaits::DeviceWaits() {
  int* mode = sync_debug_mode();
  if (mode == nullptr) return;
  handler_ = new Handler;
  c10::WarningUtils::set_warning_handler(handler_);
  c10::WarningUtils::set_warnAlways(true);
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(begin_op, end_op));
  *mode = 1;
}

DeviceWaits::~DeviceWaits() {
  if (handler_ == nullptr) return;
  *sync_debug_mode() = 0;
  at::removeCallback(callback_);
  c10::WarningUtils::set_warnAlways(false);
  c10::WarningUtils::set_warning_handler(nullptr);
  delete handler_;
}

std::map<std::string, int64_t> DeviceWaits::take() {
  return handler_ == nullptr ? std::map<std::string, int64_t>() : handler_->take();
}

std::string waits_text(const std::map<std::string, int64_t>& waits) {
  if (waits.empty()) return "0";
  int64_t all = 0;
  std::vector<std::string> parts;
  for (const auto& [op, count] : waits) {
    all += count;
    parts.push_back(fmt::format("{} x {}", count, op));
  }
  return fmt::format("{}: {}", all, fmt::join(parts, ", "));
}

}  // namespace stepop::bench
