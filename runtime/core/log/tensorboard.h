#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/log/log_kinds.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/system/append_file.h"

namespace stepop {

/// The CRC-32C of `bytes` (Castagnoli's polynomial; RFC 3720, appendix B.4), as in iSCSI, ext4 and
/// TensorFlow's records. 0 for no bytes.
uint32_t crc32c(std::string_view bytes);

/// One record of a TFRecord file: the length of `data` (uint64, little endian), its masked CRC-32C,
/// `data`, its masked CRC-32C
/// (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details).
std::string tf_record(std::string_view data);

/// The integration `tensorboard`: an event file for each start of a training, in
/// `train/tensorboard/`: the config and the graph, then each log. A `session_log` with the status
/// START makes TensorBoard drop later steps of earlier files. Append-only; each event is one write,
/// so a killed run loses at most the last event. Each function throws the same errors as AppendFile
/// when it cannot write.
class TensorBoard : public Sink {
 public:
  TensorBoard() = default;
  struct Params : IntegrationParams {
    LogKinds kinds;
    bool graph = true;

    void declare(Parameters& p);
  };

  explicit TensorBoard(const Params& params);

  bool wants_graph() const override { return wants_graph_; }

  /// Begins a new file. TensorBoard reads the files of a folder in the order of their names, and
  /// the new name comes last. Events of the first step and later steps in earlier files are no
  /// longer shown. The config is shown as text, the graph in its own tab.
  void begin(const SinkStart& start) override;

  /// Adds one event, unless it is empty. Scalars are stored as float32. A slash in a name makes a
  /// group.
  void write(const LogEvent& event, const LogRecord& record) override;
  std::string mend() override { return file_ ? file_->mend() : ""; }
  void sync() override {
    if (file_) file_->sync();
  }

  /// The path of the file, once the training has begun.
  const std::string& path() const { return file_.value().path(); }

 private:
  bool wants_graph_ = false;
  LogKinds kinds_;
  std::optional<AppendFile> file_;
};

}  // namespace stepop
