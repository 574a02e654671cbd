#include "runtime/train/session/logged_numbers.h"

#include "runtime/train/when/logged_metric.h"

namespace stepop {

void LoggedNumbers::take(const OrderedMap<double>& scalars, const Elapsed& now) {
  const int64_t step = session_.position().global_step;
  for (const auto& [name, value] : scalars) seen_.insert(name);
  session_.stop_when().observe(scalars, now);
  for (const auto& text : session_.metric_schedules().observe(step, scalars)) console_.info(text);
  checkpoints_.observe(step, scalars);
}

void LoggedNumbers::check(const std::vector<std::string>& open) const {
  const Settings& settings = session_.settings();
  LoggedNames names{.known = {seen_.begin(), seen_.end()}, .open = open};
  names.open.insert(names.open.end(), {"runtime", "hooks"});
  for (const auto& op : settings.log_ops) names.open.push_back(op.name.text());
  for (const auto& op : settings.train_ops) names.open.push_back(op.name.text());
  for (const auto& [config, path, metric] : session_.watched_numbers()) {
    check_is_logged(config, path, metric, names);
  }
  if (checkpoints_.knows_metric()) return;
  check_is_logged(session_.config(), "checkpoints/metric", settings.retention.metric, names);
}

}  // namespace stepop
