#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/log/log_kinds.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/programs/child.h"

namespace stepop {

/// The parameters that all bridges have.
struct BridgeParams : IntegrationParams {
  LogKinds kinds;  ///< stepop.eval.bridge reads and follows it.
  std::optional<std::string> python;
  int64_t wait = 15;  ///< In seconds.

  void declare(Parameters& p);
};

/// An integration that is a separate program next to the training: `python -m stepop.eval.<name>
/// --beside RUN` gets only the path of the run, follows its files, and sends them to a service. It
/// outlives the training until the rest is sent. If the program fails, the training continues with
/// one warning.
class Bridge : public Sink {
 public:
  /// `name`: the name of the integration, of the Python module, and of its folder in the run.
  Bridge(std::string name, const BridgeParams& params);

  void begin(const SinkStart& start) override;
  void write(const LogEvent& /*event*/, const LogRecord& /*record*/) override {}
  /// Returns a warning if the program could not be started or has failed since.
  std::string mend() override;

  /// Called after the run's state is written: waits until the rest is sent, at most the config's
  /// `wait`. If that takes more than a second, calls `waiting` with a text for the user. Returns a
  /// warning, or an empty text.
  std::string finish(const std::function<void(const std::string&)>& waiting);

 private:
  std::string name_;
  std::string python_;
  int64_t wait_ = 0;  ///< In seconds.
  std::string run_ = {};
  std::string output_ = {};
  std::string failure_ = {};  ///< Why the program could not be started.
  bool has_warned_ = false;
  std::unique_ptr<Child> child_ = nullptr;
};

}  // namespace stepop
