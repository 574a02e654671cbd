#include "runtime/data/fitted.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The path below `value` of the first map whose class is `name`.
std::optional<std::string> path_of_class(const Value& value, const std::string& name) {
  if (value.is_text() && value.as_text() == name) return "";
  if (value.is_map()) {
    const Value* class_name = value.as_map().find("class");
    if (class_name != nullptr && *class_name == Value(name)) return "";
    for (const auto& [key, item] : value.as_map()) {
      if (!item.is_map() && !item.is_list()) continue;
      if (const auto path = path_of_class(item, name)) return join_path(key, *path);
    }
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.as_list().size(); ++i) {
      const auto path = path_of_class(value.as_list()[i], name);
      if (path) return join_path(std::to_string(i), *path);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Config> find_part(const Config& config, const std::string& split,
                                const std::string& name) {
  const Config root = config.root();
  const std::string place = "datasets/" + split;
  const Value* dataset = root.peek(place);
  if (dataset == nullptr) return std::nullopt;
  const auto path = path_of_class(*dataset, name);
  if (!path) return std::nullopt;
  return root.at(join_path(place, *path));
}

Config part_to_fit(const Config& params, const std::string& name) {
  const auto split = params.get<std::string>("fit");
  const auto part = find_part(params, split, name);
  if (!part) {
    throw params.error("fit", fmt::format("expected the name of a split whose dataset is a {0}, or "
                                          "has one inside, such as train; datasets/{1} {2}",
                                          name, split,
                                          params.root().peek("datasets/" + split) == nullptr
                                              ? "is not there, there are: " +
                                                    list_text(params.root().at("datasets").keys())
                                              : "has none"));
  }
  if (part->path() == params.path()) {
    throw params.error("fit", fmt::format("datasets/{} is this dataset itself; leave out \"fit\", "
                                          "and it is fitted on its own examples",
                                          split));
  }
  if (part->peek("fit") != nullptr && !part->peek("fit")->is_null()) {
    throw params.error("fit", fmt::format("{} is fitted on another split itself: fit: {}",
                                          part->path(), part->peek("fit")->describe()));
  }
  return *part;
}

}  // namespace stepop
