#include "runtime/core/log/profile_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"

namespace stepop {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
/// The smallest share for which nested parts are listed; it shows as 0.1 %.
constexpr double kLeastShare = 0.0005;

using Microseconds = std::chrono::duration<double, std::micro>;

class Rows {
 public:
  explicit Rows(const Profile& profile)
      : whole_(Milliseconds(profile.whole().total).count()),
        steps_(static_cast<double>(std::max<int64_t>(profile.steps(), 1))) {
    add_parts(profile.whole(), 0);
    Milliseconds rest = profile.whole().total;
    for (const auto& part : profile.whole().parts) rest -= part->total;
    add_row("the rest", rest, {}, {});
  }

  std::string text() const { return table_.text(); }

 private:
  void add_parts(const Profile::Part& around, size_t depth) {
    std::vector<const Profile::Part*> parts;
    for (const auto& part : around.parts) parts.push_back(part.get());
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto* a, const auto* b) { return a->total > b->total; });
    for (const auto* part : parts) {
      const double share = Milliseconds(part->total).count() / whole_;
      if (depth > 0 && share < kLeastShare) continue;
      add_row(std::string(2 * depth, ' ') + part->name, part->total, with_thousands(part->count),
              fmt::format("{:.3f}", Milliseconds(part->times.median()).count()));
      add_parts(*part, depth + 1);
    }
  }

  void add_row(const std::string& name, Milliseconds total, const std::string& count,
               const std::string& median) {
    table_.add({name, fmt::format("{:.1f} %", 100 * total.count() / whole_),
                fmt::format("{:.3f}", total.count() / steps_), count, median,
                fmt::format("{:.3f}", total.count() / 1000)});
  }

  double whole_;
  double steps_;
  TextTable table_{{{"part"},
                    {"of the time", true},
                    {"ms a step", true},
                    {"times", true},
                    {"median ms", true},
                    {"total s", true}}};
};

}  // namespace

std::string profile_table(const Profile& profile) {
  const std::string table = Rows(profile).text();
  if (profile.sums().count() == 0) return table;
  const double total = Milliseconds(profile.sums()).count();
  return fmt::format(
      "{}\nsums of gradients over the processes: {:.3f} ms a step, {:.0f} % of it beside the "
      "backward pass",
      table, total / static_cast<double>(std::max<int64_t>(profile.steps(), 1)),
      100 * Milliseconds(profile.sums_beside()).count() / total);
}

std::string chrome_trace(const Profile& profile) {
  std::string json = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (size_t i = 0; i < profile.threads().size(); ++i) {
    json += fmt::format(
        "{}{{\"ph\": \"M\", \"pid\": 0, \"tid\": {}, \"name\": \"thread_name\", "
        "\"args\": {{\"name\": {}}}}}",
        i == 0 ? "" : ",\n", i, json_text(profile.threads()[i]));
  }
  for (const auto& event : profile.events()) {
    json += fmt::format(
        ",\n{{\"ph\": \"X\", \"pid\": 0, \"tid\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}, "
        "\"name\": {}, \"args\": {{\"step\": {}}}}}",
        event.thread, Microseconds(event.begin).count(), Microseconds(event.length).count(),
        json_text(event.name), event.step);
  }
  return json + "\n]}\n";
}

}  // namespace stepop
