#include "runtime/train/when/checkpoint_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/config/read_pattern.h"
#include "runtime/core/value/yaml_text.h"

namespace stepop {
namespace {

constexpr const char* kFilter = "eval_filter";

}  // namespace

/// Reads `validation/eval_op/loss < 0.5`. The metric's name may have any other characters.
CheckpointFilter::Condition CheckpointFilter::read_condition(const Config& part,
                                                             const std::string& key) {
  const auto text = part.get<std::string>(key);
  const auto fail = [&] {
    return part.error(key, fmt::format("expected a metric, <, <=, > or >=, and a number, such as "
                                       "\"validation/eval_op/loss < 0.5\", found \"{}\"",
                                       text));
  };
  const size_t sign = text.find_last_of("<>");
  if (sign == std::string::npos) throw fail();
  const bool or_equal = sign + 1 < text.size() && text[sign + 1] == '=';
  const auto trimmed = [](std::string word) {
    word.erase(0, std::min(word.find_first_not_of(' '), word.size()));
    word.erase(word.find_last_not_of(' ') + 1);
    return word;
  };
  const Value number = plain_scalar(trimmed(text.substr(sign + (or_equal ? 2 : 1))));
  Condition condition{trimmed(text.substr(0, sign)), Relation::kLess, 0};
  if (condition.metric.empty() || !(number.is_int() || number.is_float())) throw fail();
  condition.value = number.is_int() ? static_cast<double>(number.as_int()) : number.as_float();
  if (std::isnan(condition.value)) throw fail();
  if (text[sign] == '<') {
    condition.relation = or_equal ? Relation::kLessOrEqual : Relation::kLess;
  } else {
    condition.relation = or_equal ? Relation::kGreaterOrEqual : Relation::kGreater;
  }
  return condition;
}

CheckpointFilter::CheckpointFilter(const Config& config) {
  const Config part = config.at(kFilter);
  const bool has_steps = part.has("steps");
  const bool has_match = part.has("match");
  const bool has_where = part.has("where");
  from_ = part.get_at_least("from", 0, from_);
  until_ = part.get_at_least("until", 0, until_);
  const Value* value = config.peek(kFilter);
  if (value == nullptr || value->is_null()) return;
  if (!value->is_map()) {
    throw config.error(kFilter,
                       fmt::format("expected a map of steps, from, until, match and where, "
                                   "such as {{from: 1000}}, found {}",
                                   value->describe()));
  }
  if (until_ < from_) {
    throw part.error("until", fmt::format("expected from, {}, or more", from_));
  }
  if (has_steps) {
    steps_ = part.get<std::vector<int64_t>>("steps");
    if (steps_.empty()) throw part.error("steps", "expected one step or more, found none");
  }
  if (has_match) match_ = read_pattern(part, "match");
  if (!has_where) return;
  if (!part.peek("where")->is_list()) {
    conditions_.push_back(read_condition(part, "where"));
    return;
  }
  for (size_t i = 0; i < part.peek("where")->as_list().size(); ++i) {
    conditions_.push_back(read_condition(part, fmt::format("where/{}", i)));
  }
}

bool CheckpointFilter::takes(int64_t step, std::string_view name) const {
  const bool is_listed =
      steps_.empty() || std::find(steps_.begin(), steps_.end(), step) != steps_.end();
  return is_listed && step >= from_ && step <= until_ && match_.is_in(name);
}

std::optional<bool> CheckpointFilter::holds(const FindMetric& find) const {
  bool all = true;
  for (const auto& [metric, relation, value] : conditions_) {
    const std::optional<double> found = find(metric);
    if (!found) return std::nullopt;
    using enum Relation;
    all = all &&
          ((relation == kLess && *found < value) || (relation == kLessOrEqual && *found <= value) ||
           (relation == kGreater && *found > value) ||
           (relation == kGreaterOrEqual && *found >= value));
  }
  return all;
}

}  // namespace stepop
