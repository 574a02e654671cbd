#include "runtime/tools/trial/op_measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/train/run/device.h"

namespace stepop {
namespace {

constexpr size_t kFewestRounds = 2;  // code that keeps a graph beyond a step fails in the second
constexpr size_t kMostRounds = 5;
constexpr std::chrono::seconds kLong{2};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::string signed_size(int64_t bytes) {
  return (bytes < 0 ? "-" : "") + size_text(std::abs(static_cast<double>(bytes)));
}

}  // namespace

OpMeasurements::Measurement::Measurement(OpMeasurements& all, const std::string& name)
    : all_(all), part_(all.part(name)), bytes_before_(all.memory_.now(all.device_.type())) {
  all_.memory_.begin_part();
  begin_ = Clock::now();
}

OpMeasurements::Measurement::~Measurement() {
  try {
    synchronize(all_.device_);
  } catch (const std::exception&) {  // the next use of the device reports the error
  }
  part_.seconds.push_back(std::chrono::duration<double>(Clock::now() - begin_).count());
  const auto device = all_.device_.type();
  part_.most_bytes = all_.memory_.most_of_part(device) - bytes_before_;
  part_.left_bytes = all_.memory_.now(device) - bytes_before_;
}

OpMeasurements::Part& OpMeasurements::part(const std::string& name) {
  const auto found =
      std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.name == name; });
  if (found != parts_.end()) return *found;
  return parts_.emplace_back(Part{name, {}});
}

bool OpMeasurements::begin_round() {
  if (rounds_ == 0) first_round_ = Clock::now();
  const bool is_long = Clock::now() - first_round_ > kLong;
  if (rounds_ >= kMostRounds || (rounds_ >= kFewestRounds && is_long)) return false;
  ++rounds_;
  return true;
}

std::string OpMeasurements::table() const {
  TextTable table({{"op"},
                   {fmt::format("median of {}", rounds_), true},
                   {"memory at most", true},
                   {"memory left", true}});
  for (const auto& part : parts_) {
    table.add({part.name, fmt::format("{:.3f} ms", 1e3 * median(part.seconds)),
               signed_size(part.most_bytes), signed_size(part.left_bytes)});
  }
  return table.text();
}

}  // namespace stepop
