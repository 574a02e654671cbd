#include "runtime/tools/export/standardization_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {
namespace {

constexpr size_t kMostShown = 8;

/// `13.07`, or `[13.07, 2.35, ...]` of many.
std::string numbers_text(const Value& value) {
  const auto text_of = [](const Value& item) {
    return item.is_float() ? short_number(item.as_float())
           : item.is_int() ? short_number(static_cast<double>(item.as_int()))
                           : item.describe();
  };
  if (!value.is_list()) return text_of(value);
  std::string text;
  const auto& items = value.as_list();
  for (size_t i = 0; i < std::min(items.size(), kMostShown); ++i) {
    text += (i > 0 ? ", " : "") + text_of(items[i]);
  }
  return fmt::format("[{}{}]", text, items.size() > kMostShown ? ", ..." : "");
}

void look(const Value& value, const std::string& place, OrderedMap<std::string>& notes) {
  if (value.is_list()) {
    for (size_t i = 0; i < value.as_list().size(); ++i) {
      look(value.as_list()[i], fmt::format("{}/{}", place, i), notes);
    }
  }
  if (!value.is_map()) return;
  for (const auto& [key, item] : value.as_map()) look(item, place + "/" + key, notes);
  const Value* name = value.find("class");
  const Value* means = value.find("mean");
  const Value* stds = value.find("std");
  if (name == nullptr || !name->is_text() || name->as_text() != "Standardized") return;
  if (means == nullptr || stds == nullptr || !means->is_map()) return;
  for (const auto& [key, mean] : means->as_map()) {
    const Value* std = stds->find(key);
    if (std == nullptr || notes.contains(key)) continue;
    notes.set(key, fmt::format("the data's \"{0}\" is standardized, and the file does not do that: "
                               "give it ({0} - mean) / std, with mean {1} and std {2}; all digits "
                               "are in the run's config, {3}/mean and {3}/std",
                               key, numbers_text(mean), numbers_text(*std), place));
  }
}

}  // namespace

std::vector<std::string> standardization_notes(const Value& config) {
  OrderedMap<std::string> notes;
  const Value* datasets = config.find("datasets");
  // An exported network is called as in an evaluation.
  for (const char* split : {"validation", "train"}) {
    const Value* dataset = datasets == nullptr ? nullptr : datasets->find(split);
    if (dataset != nullptr) look(*dataset, std::string("datasets/") + split, notes);
  }
  std::vector<std::string> texts;
  for (const auto& [key, text] : notes) texts.push_back(text);
  return texts;
}

}  // namespace stepop
