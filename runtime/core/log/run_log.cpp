#include "runtime/core/log/run_log.h"

#include "runtime/core/log/console.h"

namespace stepop {

void RunLog::info(std::string_view text) {
  if (console_ == nullptr) {
    before_.emplace_back(false, text);
  } else {
    console_->info(text);
  }
}

void RunLog::warn(std::string_view text) {
  if (console_ == nullptr) {
    before_.emplace_back(true, text);
  } else {
    console_->warn(text);
  }
}

void RunLog::begin(Console& console) {
  console_ = &console;
  for (const auto& [is_warning, text] : std::exchange(before_, {})) {
    is_warning ? warn(text) : info(text);
  }
}

}  // namespace stepop
