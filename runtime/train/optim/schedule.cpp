#include "runtime/train/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace stepop {
namespace {

/// Null without a collector, and while a schedule is being built.
thread_local std::vector<BuiltSchedule>* collected = nullptr;

}  // namespace

ScheduleCollector::ScheduleCollector(std::vector<BuiltSchedule>& schedules)
    : before_(std::exchange(collected, &schedules)) {}

ScheduleCollector::~ScheduleCollector() { collected = before_; }

ScheduleRegistry& schedules() {
  static ScheduleRegistry registry("schedule");
  return registry;
}

Scheduled::Scheduled(const Config& config, std::string_view path) {
  const Value* value = config.peek(path);
  if (value == nullptr || value->is_int() || value->is_float()) {
    value_ = config.get<double>(path);
    return;
  }
  const auto& known = schedules().registrations();
  const bool is_schedule =
      value->is_map() || (value->is_text() && std::any_of(known.begin(), known.end(), [&](auto& r) {
                            return r.name == value->as_text();
                          }));
  if (!is_schedule) {
    std::string names;
    for (const auto& registration : known) names += (names.empty() ? "" : ", ") + registration.name;
    throw config.error(path, fmt::format("expected a number or a schedule ({}), found {}", names,
                                         value->describe()));
  }
  std::vector<BuiltSchedule>* const outer = std::exchange(collected, nullptr);
  schedule_ = schedules().build(config, path);
  collected = outer;
  if (outer != nullptr) outer->push_back({config, std::string(path), schedule_});
}

Scheduled::Scheduled(const Config& config, std::string_view path, double fallback)
    : value_(fallback) {
  if (config.has(path)) *this = Scheduled(config, path);
}

const Scheduled& Scheduled::at_least(double minimum, const Config& config,
                                     std::string_view path) const {
  if (!(at(0) >= minimum)) {
    throw config.error(path, fmt::format("expected {} or more, found {}", minimum, at(0)));
  }
  if (fits_float(at(0))) return *this;
  throw config.error(path, fmt::format("expected a finite number, found {}", at(0)));
}

}  // namespace stepop
