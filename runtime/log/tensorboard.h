#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/ordered_map.h"
#include "runtime/system/append_file.h"

namespace stepop {

/// One record of a TFRecord file: the length of `data` (uint64, little endian), its masked CRC-32C,
/// `data`, its masked CRC-32C
/// (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details).
std::string tf_record(std::string_view data);

/// The event file of one start of a training, which TensorBoard shows; runtime/log/README.md tells
/// what is in it. Append-only; each event is one write, so a killed run loses at most its last one.
/// All functions but `sync` are for one thread; each throws Error, as AppendFile does, when it
/// cannot write.
class TensorBoard {
 public:
  /// Begins a new file in `folder`, which it makes: TensorBoard reads the files of one folder in
  /// the order of their names, and this name comes last. What the files before have of `first_step`
  /// and later steps is no longer shown. `config` is shown as text.
  TensorBoard(const std::string& folder, int64_t first_step, std::string_view config);

  /// Adds one event, unless it would be empty. Scalars are stored as float32; `pngs` are the bytes
  /// of PNG files, grey or RGB. A slash in a name makes a group.
  void write(int64_t step, const OrderedMap<double>& scalars,
             const OrderedMap<std::string>& pngs = {});

  /// Returns when all events are on the disk. May be called in another thread.
  void sync() { file_.sync(); }

  const std::string& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace stepop
