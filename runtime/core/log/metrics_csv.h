#pragma once

#include <optional>
#include <string>

#include "runtime/core/log/sink.h"
#include "runtime/core/system/append_file.h"

namespace stepop {

/// The integration `csv` writes `train/metrics.csv`: a header with the column names,
/// `step,epoch,samples,time,name,value`, and a line for each number. Append-only; each event is one
/// write. Numbers are written as in C, with `nan` and `inf`. Each function throws the same errors
/// as AppendFile.
class MetricsCsv : public Sink {
 public:
  MetricsCsv() = default;
  using Params = IntegrationParams;
  explicit MetricsCsv(const Params& /*params*/) {}

  /// Keeps the lines of steps before the first step, removes all others, and continues after them.
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
