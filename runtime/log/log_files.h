#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/log/logs.h"
#include "runtime/log/sink.h"

namespace stepop {

/// Images and texts as files of their own, `<folder>/<name>_<step>.png` and `.txt`, each whole or
/// not there: `train/train/log_op/input_0000100.png`. Histograms and curves are a picture and a
/// table, `.csv`.
class LogFiles : public Sink {
 public:
  void begin(const SinkStart& start) override { folder_ = start.folder; }
  void write(const LogEvent& event, const LogRecord& record) override;

 private:
  std::string folder_;
};

/// Adds what of `logs` becomes files - images, texts, histograms, curves - to a record, under names
/// that begin with `prefix` and a slash. Throws Error, with the key, for what cannot be a file or
/// is no image or curve.
void add_files(LogRecord& record, const std::string& prefix, const Logs& logs);

/// Writes them as LogFiles does, into a folder that is there.
void write_log_files(const std::string& folder, int64_t step, const LogRecord& record);

/// `loss_0000700`: a name with a step of at least seven digits behind it.
std::string name_with_step(std::string_view name, int64_t step);

/// What `name_with_step` put together, the step with any number of digits.
struct SteppedName {
  std::string name;
  int64_t step = 0;
};
/// Nothing for a name without a step behind its last `_`.
std::optional<SteppedName> parse_name_with_step(std::string_view name);

/// Throws Error unless `name`, such as the key of a logged image, can be the end of a path: its
/// parts between slashes have 1 to 200 bytes and are neither "." nor "..", and it has no byte 0.
/// `what` names it in the message: `train/log_op: the image`.
void check_file_name(const std::string& what, std::string_view name);

}  // namespace stepop
