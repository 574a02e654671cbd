#include "runtime/tools/survey/survey_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

/// The number of a key's values that the table lists one by one.
constexpr size_t kListedValues = 6;
constexpr size_t kExampleRows = 3;
constexpr size_t kProblemRows = 10;
/// The number of a small tensor's numbers in a cell.
constexpr int64_t kShownNumbers = 6;

std::string number_text(double number) {
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e15;
  return is_whole ? fmt::format("{:.0f}", number + 0.0) : short_number(number);  // no -0
}

std::string cell(const std::optional<double>& number) {
  return number ? number_text(*number) : kNoValue;
}

/// A short span of time: `21 us`, `3.4 ms`, `1.2 s`.
std::string duration_text(double seconds) {
  if (seconds < 1e-3) return short_number(std::round(seconds * 1e7) / 10) + " us";
  if (seconds < 1) return short_number(seconds * 1e3) + " ms";
  return short_number(seconds) + " s";
}

/// `10 values; rarest 5 (5,421), commonest 1 (6,742)`.
std::string values_text(const KeySummary& summary) {
  const auto counts = summary.counts();
  if (counts.empty()) return "";
  const size_t most_shown = 24;
  if (counts.size() <= kListedValues) {
    std::vector<std::string> each;
    for (const auto& [value, times] : counts) {
      each.push_back(fmt::format("{}: {}", short_text(value, most_shown), with_thousands(times)));
    }
    return fmt::format("{}", fmt::join(each, ", "));
  }
  const auto by_times = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end(), by_times);
  if (fewest->second == most->second) {
    return fmt::format("{}, each {}", counted(counts.size(), "value"),
                       most->second == 1 ? "once" : with_thousands(most->second) + " times");
  }
  return fmt::format("{} values; rarest {} ({}), commonest {} ({})", counts.size(),
                     short_text(fewest->first, most_shown), with_thousands(fewest->second),
                     short_text(most->first, most_shown), with_thousands(most->second));
}

std::string notes_of(const KeySummary& summary, int64_t good) {
  std::vector<std::string> notes;
  if (summary.examples() < good) {
    notes.push_back(fmt::format("only in {} of {} examples", with_thousands(summary.examples()),
                                with_thousands(good)));
  }
  if (summary.nans() > 0) notes.push_back(with_thousands(summary.nans()) + " NaN");
  if (summary.infinities() > 0) notes.push_back(with_thousands(summary.infinities()) + " infinite");
  if (const std::string values = values_text(summary); !values.empty()) notes.push_back(values);
  return fmt::format("{}", fmt::join(notes, "; "));
}

std::string key_table(const Survey& survey) {
  TextTable table({{"key"},
                   {"type"},
                   {"shape"},
                   {"min", true},
                   {"max", true},
                   {"mean", true},
                   {"deviation", true},
                   {""}});
  const int64_t good = survey.read - survey.bad_count;
  for (const auto& [key, summary] : survey.keys) {
    const auto deviation = summary.deviation();
    table.add({key, summary.type_text(), summary.shape_text(), cell(summary.min()),
               cell(summary.max()), summary.mean() ? short_number(*summary.mean()) : kNoValue,
               deviation ? short_number(*deviation) : kNoValue, notes_of(summary, good)});
  }
  return table.text();
}

std::string example_table(const Survey& survey, size_t width) {
  if (survey.shown.empty()) return "";
  std::vector<TextTable::Column> columns = {{"example", true}};
  for (const auto& [key, summary] : survey.keys) columns.push_back({key});
  TextTable table(columns);
  for (size_t i = 0; i < std::min(kExampleRows, survey.shown.size()); ++i) {
    const auto& [index, example] = survey.shown[i];
    std::vector<std::string> cells = {with_thousands(index)};
    for (const auto& [key, summary] : survey.keys) {
      const at::Tensor* tensor = example.tensors.find(key);
      const std::string* text = example.texts.find(key);
      cells.push_back(tensor != nullptr ? short_value(*tensor)
                      : text != nullptr ? short_text(*text)
                                        : kNoValue);
    }
    table.add(std::move(cells));
  }
  std::string text;
  for (const auto& part : table.parts(width, 1)) text += "\n" + part.text();
  return text;
}

std::string problem_lines(const Survey& survey) {
  std::string text;
  if (survey.bad_count > 0) {
    text += fmt::format("\n{} of {} that were read: {}\n", counted(survey.bad_count, "bad example"),
                        with_thousands(survey.read), index_list(survey.bad_indices, 20));
    for (size_t i = 0; i < std::min(kProblemRows, survey.bad.size()); ++i) {
      text += fmt::format("  example {}: {}\n", survey.bad[i].index, survey.bad[i].problem);
    }
  }
  if (!survey.with_nan.empty()) {
    text += fmt::format("\nNaN or infinity in {}: {}\n", counted(survey.with_nan.size(), "example"),
                        index_list(survey.with_nan, 20));
  }
  return text;
}

/// The two largest of shares that sum to 1, such as a soft label, with their places: `3 0.7, 5
/// 0.3`; the place alone where one share is all. Empty for other numbers.
std::string largest_shares(const at::Tensor& value) {
  constexpr int64_t kLeastShares = 3;
  constexpr double kTolerance = 1e-4;
  if (value.numel() < kLeastShares || !value.is_floating_point()) return "";
  const at::Tensor shares = value.to(at::kDouble);
  if (std::abs(shares.sum().item<double>() - 1) > kTolerance || shares.lt(0).any().item<bool>()) {
    return "";
  }
  std::string text;
  const auto [largest, places] = shares.topk(2);
  if (largest[0].item<double>() > 1 - kTolerance)
    return fmt::format("{}", places[0].item<int64_t>());
  for (int64_t i = 0; i < 2; ++i) {
    const auto share = largest[i].item<double>();
    if (share < kTolerance) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", places[i].item<int64_t>(),
                        short_number(share));
  }
  return text;
}

}  // namespace

std::string index_list(const std::vector<int64_t>& indices, size_t most) {
  const auto end = indices.begin() + static_cast<int64_t>(std::min(most, indices.size()));
  const std::string text = fmt::format("{}", fmt::join(indices.begin(), end, ", "));
  if (indices.size() <= most) return text;
  return fmt::format("{} and {} more", text,
                     with_thousands(static_cast<int64_t>(indices.size() - most)));
}

std::string short_text(const std::string& text, size_t most) {
  std::string line;
  for (const char c : text) line += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  if (line.size() <= most) return line;
  size_t end = most - 2;
  // Does not cut inside a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "..";
}

std::string short_value(const at::Tensor& value) {
  if (value.dim() > 1 || value.is_complex()) return describe_tensor(value);
  if (std::string shares = largest_shares(value); !shares.empty()) return shares;
  std::vector<std::string> numbers;
  const at::Tensor flat = value.reshape({-1}).slice(0, 0, kShownNumbers).to(at::kDouble);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    numbers.push_back(number_text(flat[i].item<double>()));
  }
  if (value.dim() == 0) return numbers.front();
  const bool is_whole = value.numel() <= kShownNumbers;
  return fmt::format("[{}{}]", fmt::join(numbers, ", "), is_whole ? "" : ", ..");
}

std::string survey_text(const Survey& survey, const std::string& title, size_t width) {
  const bool is_all = survey.read == survey.size;
  std::string text = fmt::format("{}, {}, ", title, counted(survey.size, "example"));
  text += fmt::format(
      "{} read in {}, {} each in one thread\n\n",
      is_all ? std::string("all") : fmt::format("{} of them", with_thousands(survey.read)),
      duration_text(survey.seconds), duration_text(survey.example_seconds));
  text += key_table(survey);
  text += example_table(survey, width);
  text += problem_lines(survey);
  return text;
}

}  // namespace stepop
