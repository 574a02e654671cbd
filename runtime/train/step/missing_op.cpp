#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/components/registry.h"
#include "runtime/train/step/call_op.h"

namespace stepop {
namespace {

/// The paths at which a config may name ops.
std::vector<std::string> places_of_ops(const Config& config) {
  std::vector<std::string> places;
  const auto add_list = [&](const std::string& key) {
    const Value* list = config.peek(key);
    if (list == nullptr || !list->is_list()) return;
    for (size_t i = 0; i < list->as_list().size(); ++i) {
      const std::string item = fmt::format("{}/{}", key, i);
      places.push_back(list->as_list()[i].is_map() ? item + "/op" : item);
    }
  };
  const Value* stages = config.peek("stages");
  for (size_t i = 0; stages != nullptr && stages->is_list() && i < stages->as_list().size(); ++i) {
    add_list(fmt::format("stages/{}/train_ops", i));
  }
  add_list("train_ops");
  add_list("log_ops");
  places.emplace_back("eval_hook/eval_op");
  for (const auto& name : config.at("evaluations").keys()) {
    places.push_back(fmt::format("evaluations/{}/eval_op", name));
  }
  return places;
}

/// The place where the config names `op`; nothing where the op is due by default.
std::optional<std::string> place_of_op(const Config& config, const std::string& op) {
  for (const auto& place : places_of_ops(config)) {
    const Value* value = config.peek(place);
    if (value != nullptr && value->is_text() && value->as_text() == op) return place;
  }
  return std::nullopt;
}

template <class Op>
void list(std::vector<std::string>& names, const std::string& split, const char* first_name,
          const Op& first, const OrderedMap<Op>& others) {
  if (first) names.push_back(split + "/" + first_name);
  for (const auto& [name, op] : others) {
    if (op) names.push_back(split + "/" + name);
  }
}

/// The ops that may stand at `place`, with their full names.
std::vector<std::string> ops_for(const std::string& place, const std::string& split,
                                 const StepOps& ops) {
  std::vector<std::string> names;
  if (place.find("train_ops") != std::string::npos) {
    list(names, split, "train_op", ops.train_op, ops.train_ops);
  } else if (place.starts_with("log_ops")) {
    list(names, split, "log_op", ops.log_op, ops.log_ops);
  } else {
    list(names, split, "eval_op", ops.eval_op, ops.eval_ops);
  }
  return names;
}

}  // namespace

Error missing_op(const Context& context, const std::string& split, const std::string& op,
                 const StepOps& ops) {
  std::string hint;
  if (op == "train_op" && !ops.train_ops.empty()) {
    for (const auto& [name, closure] : ops.train_ops) {
      hint += fmt::format("{}train/{}", hint.empty() ? "" : ", ", name);
    }
    hint = fmt::format("\n  to call those, in this order: train_ops: [{}]", hint);
  }
  const Config config = context.config.root();
  const std::string name = fmt::format("{}/{}", split, op);
  const std::string message = fmt::format(
      "{} is due, but step_op of the iterator {} did not return it for the split {}; it "
      "returned: {}{}",
      name, read_component(config, "iterator").name, split, ops.names(), hint);
  const auto place = place_of_op(config, name);
  if (!place) return Error(message);
  const auto nearest = nearest_paths(name, ops_for(*place, split, ops), 1);
  return config.error(*place, nearest.empty()
                                  ? message
                                  : fmt::format("{}; did you mean \"{}\"?", message, nearest[0]));
}

Error missing_log_op(const Context& context, const std::string& split, const std::string& op,
                     const StepOps& ops) {
  const Error missing = missing_op(context, split, op, ops);
  return Error(fmt::format("{}\n  return it from step_op, or leave it out of log_ops: what train "
                           "ops return is logged without a log op",
                           missing.what()),
               missing.exit_code());
}

}  // namespace stepop
