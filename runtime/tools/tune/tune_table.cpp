#include "runtime/tools/tune/tune_table.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"

namespace stepop {
namespace {

std::string interval(const Ratio& ratio) {
  if (ratio.low <= 0) return kNoValue;
  return fmt::format("{:.2f} to {:.2f}", ratio.low, ratio.high);
}

std::string note_of(const TunedRow& row, const TuneResult& result) {
  if (!row.failure.empty()) return "failed: " + row.failure.substr(0, row.failure.find('\n'));
  std::string note;
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (!result.winner.settings.empty() && row.candidate.settings == result.winner.settings) {
    add("the winner");
  } else if (row.is_as_fast) {
    add("as fast, within the noise");
  } else if (row.was_dropped) {
    add("dropped early");
  }
  if (row.candidate.changes_results) add("changes results");
  return note;
}

std::string conclusion(const TuneResult& result) {
  std::string text;
  if (!result.not_tried.empty()) {
    text += fmt::format("not tried, as there was no time: {}\n", list_text(result.not_tried));
  }
  if (!result.not_confirmed.empty()) {
    text += fmt::format("not confirmed when measured again: {}\n", list_text(result.not_confirmed));
  }
  if (result.winner.settings.empty()) {
    return text + "nothing is faster than the present settings beyond the noise: they stay\n";
  }
  return text + fmt::format(
                    "{}: {:.2f} times the present speed, {} when measured again with new "
                    "processes, {} portions each\n",
                    result.winner.name(), result.confirmed.median, interval(result.confirmed),
                    result.confirmed.count);
}

}  // namespace

std::string tune_table(const TunedSteps& tuned) {
  const TuneResult& result = tuned.result;
  TextTable table(
      {{"settings"}, {"steps/s", true}, {"ratio", true}, {"spread", true}, {"memory", true}, {""}});
  const auto add = [&](const std::string& name, const TunedRow& row, const std::string& ratio,
                       const std::string& spread, const std::string& note) {
    table.add({name,
               row.step_seconds > 0 && row.failure.empty() ? short_number(1 / row.step_seconds)
                                                           : std::string(kNoValue),
               ratio, spread, row.memory > 0 ? size_text(row.memory) : std::string(kNoValue),
               note});
  };
  add("as it is", result.present, "1.00", interval(result.present.speed),
      "spread: one portion against the next");
  for (const TunedRow& row : result.rows) {
    const bool has_failed = !row.failure.empty();
    add(row.candidate.name(), row, has_failed ? kNoValue : fmt::format("{:.2f}", row.speed.median),
        has_failed ? kNoValue : interval(row.speed), note_of(row, result));
  }
  return fmt::format("{}, batches of {}; ratio: times the present speed\n\n{}\n{}", tuned.device,
                     tuned.batch_size, table.text(), conclusion(result));
}

}  // namespace stepop
