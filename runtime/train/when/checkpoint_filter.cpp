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

/// Reads `validation/eval_op/loss < 0.5`.
CheckpointFilter::Condition CheckpointFilter::read_condition(const Config& part,
                                                             const std::string& key) {
  const auto text = part.get<std::string>(key);
  const std::optional<Comparison> read = read_comparison(text);
  const Value number = read ? plain_scalar(read->value) : Value();
  const double value = number.is_int()     ? static_cast<double>(number.as_int())
                       : number.is_float() ? number.as_float()
                                           : std::nan("");
  const bool is_of_order =
      read && read->sign != Comparison::Sign::kEqual && read->sign != Comparison::Sign::kUnequal;
  if (!is_of_order || std::isnan(value)) {
    throw part.error(key, fmt::format("expected a metric, <, <=, > or >=, and a number, such as "
                                      "\"validation/eval_op/loss < 0.5\", found \"{}\"",
                                      text));
  }
  return {*read, value};
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
  for (const auto& [comparison, limit] : conditions_) {
    const std::optional<double> found = find(comparison.name);
    if (!found) return std::nullopt;
    all = all && comparison.holds(*found, limit);
  }
  return all;
}

}  // namespace stepop
