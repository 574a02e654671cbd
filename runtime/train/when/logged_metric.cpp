#include "runtime/train/when/logged_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <tuple>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// `validation/eval_op/accuracy` and `accuracy` of a full name.
std::pair<std::string, std::string> place_and_last(const std::string& name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

/// `validation/eval_op`; empty for a name that has not both.
std::string op_of(const std::string& name) {
  const size_t slash = name.find('/');
  const size_t next = slash == std::string::npos ? slash : name.find('/', slash + 1);
  return next == std::string::npos ? "" : name.substr(0, next);
}

/// Runs of letters and digits, in lower case: `val` and `acc` of `val_acc`.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::tolower(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool look_alike(const std::string& a, const std::string& b) {
  return a == b || !nearest_names(a, {b}, 1).empty();
}

/// Whether words look alike, or one is the beginning of the other: `val`, `acc`.
bool is_same_word(const std::string& a, const std::string& b) {
  constexpr size_t kShortest = 3;
  const std::string_view shorter = a.size() < b.size() ? a : b;
  const std::string_view longer = a.size() < b.size() ? b : a;
  return look_alike(a, b) || (shorter.size() >= kShortest && longer.starts_with(shorter));
}

/// How unlikely it is that `asked` means `name`, the most important first; nothing when it does
/// not.
using Unlikeliness = std::tuple<bool, int, int64_t, bool, int, std::string>;

std::optional<Unlikeliness> unlikeliness(const std::string& asked, const std::string& name) {
  const auto [place, last] = place_and_last(asked);
  const auto [its_place, its_last] = place_and_last(name);
  const std::vector<std::string> words = words_of(asked);
  const std::vector<std::string> its_words = words_of(name);
  if (words.empty() || its_words.empty()) return std::nullopt;
  const bool is_same_place = place == its_place && !place.empty();
  enum Kind { kSamePlaceNear, kSameLast, kSameCallback, kNear };
  std::optional<Kind> kind;
  if (is_same_place && look_alike(last, its_last)) {
    kind = kSamePlaceNear;
  } else if (edit_distance(last, its_last) == 0) {
    kind = kSameLast;
  } else if (name.starts_with(asked + "/") ||
             (is_same_place && !op_of(name).empty() && op_of(name) != place)) {
    kind = kSameCallback;  // which gives other numbers
  } else if (look_alike(last, its_last) || is_same_word(words.back(), its_words.back())) {
    kind = kNear;
  } else {
    return std::nullopt;
  }
  const int64_t unknown_words = std::ranges::count_if(words, [&](const std::string& word) {
    return std::ranges::none_of(its_words,
                                [&](const auto& its) { return is_same_word(word, its); });
  });
  const std::string op = op_of(asked);
  const bool is_elsewhere = !op.empty() && op != op_of(name);
  const bool is_of_batch = op_of(name).ends_with("/log_op");
  return Unlikeliness{is_elsewhere, *kind, unknown_words, is_of_batch, edit_distance(asked, name),
                      name};
}

/// Why an op's whole split logs nothing: `there is no datasets/validation, but train and valid`.
std::string missing_split(const Config& config, const std::string& metric,
                          const LoggedNames& names) {
  const std::string op = op_of(metric);
  if (op.empty()) return "";
  const std::string split = op.substr(0, op.find('/'));
  const std::string kind = op.substr(split.size() + 1);
  const Config root = config.root();
  const bool is_op = kind == "eval_op" || kind == "log_op" || kind == "train_op";
  const Value* data = root.peek("datasets/" + split);
  const bool is_there = data != nullptr && !data->is_null();
  if (!is_op || root.peek("datasets") == nullptr || is_there) return "";
  for (const auto& known : names.known) {  // a misspelt split
    if (is_same_word(split, known.substr(0, known.find('/')))) return "";
  }
  std::vector<std::string> others = root.at("datasets").keys();
  std::erase(others, split);
  return fmt::format(
      "there is no datasets/{}, but {}; evaluations take the data that has that name", split,
      list_text(others));
}

/// Whether an op or a callback that is not known in whole may give the metric.
bool may_come(const std::string& metric, const LoggedNames& names) {
  const auto [place, last] = place_and_last(metric);
  for (const auto& open : names.open) {
    if (!metric.starts_with(open + "/")) continue;
    return !names.is_first_look ||
           std::ranges::none_of(names.known, [&, of = place, key = last](const auto& known) {
             const auto [its_place, its_last] = place_and_last(known);
             return of == its_place && look_alike(key, its_last);
           });
  }
  return false;
}

}  // namespace

std::vector<std::string> sorted_by_meaning(const std::string& asked,
                                           const std::vector<std::string>& names) {
  std::vector<std::pair<Unlikeliness, std::string>> meant;
  std::vector<std::string> others;
  for (const auto& name : names) {
    if (auto cost = unlikeliness(asked, name)) {
      meant.emplace_back(std::move(*cost), name);
    } else {
      others.push_back(name);
    }
  }
  std::ranges::sort(meant);
  std::vector<std::string> sorted;
  for (auto& [cost, name] : meant) sorted.push_back(std::move(name));
  sorted.insert(sorted.end(), others.begin(), others.end());
  return sorted;
}

std::string meant_name(const std::string& asked, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  const std::string first = sorted_by_meaning(asked, names).front();
  return unlikeliness(asked, first) ? first : "";
}

bool is_short_for(const std::string& asked, const std::string& name) {
  const std::vector<std::string> wanted = split_path(asked);
  const std::vector<std::string> words = split_path(name);
  if (wanted.empty() || words.empty() || wanted.back() != words.back()) return false;
  size_t found = 0;
  for (size_t i = 0; i + 1 < words.size() && found + 1 < wanted.size(); ++i) {
    if (words[i] == wanted[found]) ++found;
  }
  return found + 1 == wanted.size();
}

void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const LoggedNames& names) {
  const auto& known = names.known;
  if (known.empty() || std::find(known.begin(), known.end(), metric) != known.end()) return;
  if (may_come(metric, names)) return;
  std::vector<std::string> candidates = known;
  // What a callback gives may be unknown before it ran, but its name is known.
  const auto [place, last] = place_and_last(metric);
  for (const auto& near : nearest_paths(place, names.open, 1)) {
    candidates.push_back(near + "/" + last);
  }
  const std::string cause = missing_split(config, metric, names);
  const std::string meant = cause.empty() ? meant_name(metric, candidates) : "";
  const std::string key = join_path(config.path(), path);
  const std::string help = !cause.empty() ? ": " + cause
                           : !meant.empty()
                               ? fmt::format("; did you mean \"{}\"?", meant)
                               : "; there are: " + list_text(sorted_by_meaning(metric, known));
  throw UnknownMetric(
      config.error(path,
                   fmt::format("no log and no evaluation gives a number \"{}\"{}", metric, help)),
      fmt::format("--{} {}", key, meant.empty() ? "NAME" : meant));
}

}  // namespace stepop
