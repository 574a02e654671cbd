#include "runtime/core/log/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>

#include "runtime/core/base/error.h"
#include "runtime/core/log/graph_def.h"
#include "runtime/core/log/protobuf.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/system/folders.h"

namespace stepop {
namespace {

using protobuf::bytes_field;
using protobuf::double_field;
using protobuf::float_field;
using protobuf::little_endian;
using protobuf::number_field;

constexpr std::string_view kPrefix = "events.out.tfevents.";

/// For each byte, its effect on the remainder of a CRC-32C; bits are reflected.
constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    }
    table[byte] = remainder;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

double wall_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Event.wall_time and Event.step, followed by the event's content.
std::string event(int64_t step, const std::string& what) {
  return double_field(1, wall_time()) + number_field(2, step) + what;
}

std::string file_version() { return event(0, bytes_field(3, "brain.Event:2")); }

/// Event.session_log with SessionLog.status START: events from its step on replace earlier ones.
std::string session_start(int64_t first_step) {
  return event(first_step, bytes_field(7, number_field(1, 1)));
}

/// A value of Event.summary.
std::string summary_value(std::string_view name, const std::string& what) {
  return bytes_field(1, bytes_field(1, name) + what);
}

std::string scalar(std::string_view name, double value) {
  return summary_value(name, float_field(2, static_cast<float>(value)));
}

/// Summary.Image.
std::string image(std::string_view name, std::string_view bytes) {
  const auto head = image_head(bytes);
  if (!head) throw Error(fmt::format("TensorBoard: the image {} is neither PNG nor JPEG", name));
  return summary_value(name,
                       bytes_field(4, number_field(1, head->height) + number_field(2, head->width) +
                                          number_field(3, head->channels) + bytes_field(4, bytes)));
}

/// Summary.Audio.
std::string sound(std::string_view name, const WavFile& wav) {
  return summary_value(
      name, bytes_field(6, float_field(1, static_cast<float>(wav.rate)) +
                               number_field(2, wav.channels) + number_field(3, wav.samples) +
                               bytes_field(4, wav.bytes) + bytes_field(5, "audio/wav")));
}

/// A tensor of one string for the plugin "text", which reads it as Markdown: indented text is shown
/// unchanged.
std::string text(std::string_view name, std::string_view content) {
  constexpr std::string_view kIndent = "    ";
  std::string code;
  for (bool is_start = true; const char c : content) {
    if (is_start) code += kIndent;
    code += c;
    is_start = c == '\n';
  }
  constexpr int64_t kString = 7;  // DataType.DT_STRING
  const std::string tensor = number_field(1, kString) + bytes_field(2, "") + bytes_field(8, code);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));  // plugin_data.plugin_name
  return summary_value(name, bytes_field(8, tensor) + bytes_field(9, metadata));
}

/// A field of a repeated double, packed.
std::string doubles_field(uint64_t field, const std::vector<double>& numbers) {
  std::string bytes;
  for (const double number : numbers) bytes += little_endian(std::bit_cast<uint64_t>(number));
  return bytes_field(field, bytes);
}

/// HistogramProto. TensorBoard cannot show numbers that are not finite.
std::string histogram(std::string_view name, const Histogram& histogram) {
  std::vector<double> limits;
  std::vector<double> counts;
  double count = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    limits.push_back(histogram.edge(i + 1));
    counts.push_back(static_cast<double>(histogram.counts[i]));
    count += counts.back();
  }
  return summary_value(
      name, bytes_field(5, double_field(1, histogram.low) + double_field(2, histogram.high) +
                               double_field(3, count) + double_field(4, histogram.sum) +
                               double_field(5, histogram.sum_of_squares) +
                               doubles_field(6, limits) + doubles_field(7, counts)));
}

std::string summary(int64_t step, const std::string& values) {
  return event(step, bytes_field(5, values));
}

/// The second in a file's name; 0 for other files.
int64_t second_of(const std::string& name) {
  int64_t second = 0;
  if (name.starts_with(kPrefix)) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), second);
  }
  return second;
}

/// A name later than those of all existing files, even if the clock was set back.
std::string new_path(const std::string& folder) {
  make_folders(folder);
  auto second = static_cast<int64_t>(wall_time());
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    second = std::max(second, second_of(entry.path().filename().string()) + 1);
  }
  return fmt::format("{}/{}{:010}.stepop", folder, kPrefix, second);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t remainder = 0xffffffff;
  for (const char c : bytes) {
    remainder = (remainder >> 8) ^ kCrcTable[(remainder ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return ~remainder;
}

std::string tf_record(std::string_view data) {
  const auto masked = [](std::string_view bytes) {
    constexpr uint32_t kMask = 0xa282ead8;
    const uint32_t sum = crc32c(bytes);
    return little_endian((sum >> 15 | sum << 17) + kMask);
  };
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  std::string record = length + masked(length);
  record += data;
  return record + masked(data);
}

void TensorBoard::Params::declare(Parameters& p) {
  IntegrationParams::declare(p);
  kinds.declare(p, "list of scalars, images (with curves), audio, texts, histograms; null: all");
  p.add("graph", graph, "with what the networks compute");
}

TensorBoard::TensorBoard(const Params& params) : wants_graph_(params.graph), kinds_(params.kinds) {}

void TensorBoard::begin(const SinkStart& start) {
  file_.emplace(new_path(start.folder + "/tensorboard"));
  file_->append(tf_record(file_version()) + tf_record(session_start(start.first_step)) +
                tf_record(summary(start.first_step, text("config", start.config))));
  if (start.graph.nodes.empty()) return;
  file_->append(tf_record(event(start.first_step, bytes_field(4, graph_def(start.graph)))));
}

void TensorBoard::write(const LogEvent& event, const LogRecord& record) {
  std::string values;
  const auto add = [&](std::string_view kind, const auto& all, const auto& value_of) {
    if (!kinds_.has(kind)) return;
    for (const auto& [name, content] : all) values += value_of(name, content);
  };
  add("scalars", record.scalars, scalar);
  add("images", record.images, image);
  add("audio", record.sounds, sound);
  add("texts", record.texts, text);
  add("histograms", record.histograms, histogram);
  if (!values.empty()) file_->append(tf_record(summary(event.step, values)));
}

}  // namespace stepop

STEPOP_REGISTER_INTEGRATION(tensorboard, stepop::TensorBoard,
                            {"Numbers, pictures, sounds, texts and the config for TensorBoard, in "
                             "the run's train/tensorboard/."});
