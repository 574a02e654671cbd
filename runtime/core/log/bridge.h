#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/log/sink.h"
#include "runtime/core/system/child.h"

namespace stepop {

/// An integration that is a program of its own, beside the training: `python -m
/// stepop_eval.<name> --beside RUN` follows the files of the run, which are all that it is given,
/// and sends them to a service. It outlives the training until it has sent the rest. Whatever
/// becomes of it, the training goes on: that is a warning, once.
class Bridge : public Sink {
 public:
  /// `name`: that of the integration, of the Python module, and of its folder in the run. Throws
  /// UsageError for a `wait` that is no number of seconds.
  Bridge(std::string name, const Config& params);

  void begin(const SinkStart& start) override;
  void write(const LogEvent& /*event*/, const LogRecord& /*record*/) override {}
  /// What is warned of, when it could not be started or has failed since.
  std::string mend() override;

  /// Once the run's state is written: waits until the rest is sent, at most the `wait` of the
  /// config; `waiting` is called with a text for people when that takes more than a second. Returns
  /// what is warned of.
  std::string finish(const std::function<void(const std::string&)>& waiting);

 private:
  std::string name_;
  std::string python_;
  int64_t wait_ = 0;  ///< Seconds.
  std::string run_ = {};
  std::string output_ = {};
  std::string failure_ = {};  ///< Why it could not be started.
  bool has_warned_ = false;
  std::unique_ptr<Child> child_ = nullptr;
};

}  // namespace stepop
