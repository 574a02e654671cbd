#include "runtime/core/log/metrics_csv.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "runtime/core/formats/csv_file.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

constexpr std::string_view kHead = "step,epoch,samples,time,name,value\n";

/// The complete lines of steps before `first_step`, without the header.
std::string lines_before(std::string_view text, int64_t first_step) {
  std::string kept(kHead);
  for (size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    int64_t step = 0;
    const auto [at, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (error == std::errc() && *at == ',' && step < first_step) kept += line;
  }
  return kept;
}

}  // namespace

void MetricsCsv::begin(const SinkStart& start) {
  const std::string path = start.folder + "/metrics.csv";
  const std::string before = std::filesystem::exists(path) ? read_file(path) : "";
  const std::string kept = lines_before(before, start.first_step);
  if (kept != before) write_file_atomically(path, kept);
  file_.emplace(path);
}

void MetricsCsv::write(const LogEvent& event, const LogRecord& record) {
  std::string lines;
  for (const auto& [name, value] : record.scalars) {
    lines += fmt::format("{},{:.6f},{},{:.3f},{},{}\n", event.step, event.epoch, event.samples,
                         event.seconds, csv_cell(name), value);
  }
  if (!lines.empty()) file_->append(lines);
}

}  // namespace stepop

STEPOP_REGISTER_INTEGRATION(csv, stepop::MetricsCsv,
                            {"Every number as a line of the run's train/metrics.csv."});
