#pragma once

#include <optional>
#include <string>

#include "runtime/core/log/sink.h"
#include "runtime/core/system/append_file.h"

namespace stepop {

/// The integration `csv`: `train/metrics.csv`, a line for each number, below the names of the
/// columns: `step,epoch,samples,time,name,value`. Append-only; each event is one write. Numbers are
/// as C prints them, `nan` and `inf` included. Each function throws Error, as AppendFile does.
class MetricsCsv : public Sink {
 public:
  MetricsCsv() = default;
  explicit MetricsCsv(const Config& /*params*/) {}

  /// Goes on behind the lines of the steps before the first one; all others are removed.
  void begin(const SinkStart& start) override;
  void write(const LogEvent& event, const LogRecord& record) override;
  std::string mend() override { return file_ ? file_->mend() : ""; }
  void sync() override {
    if (file_) file_->sync();
  }

 private:
  std::optional<AppendFile> file_;
};

}  // namespace stepop
