#include "runtime/tools/migrate/translated_config.h"

#include <utility>

namespace stepop {

void TranslatedConfig::note(std::string key, std::string text) {
  notes.push_back({std::move(key), std::move(text)});
}

void TranslatedConfig::set(std::string_view path, Value value) {
  Value* place = &config;
  for (const auto& part : split_path(path)) {
    if (!place->is_map()) *place = Value(Value::Map{});
    if (!place->as_map().contains(part)) place->as_map().set(part, Value());
    place = place->as_map().find(part);
  }
  *place = std::move(value);
}

bool is_switched_off(const Value& value) {
  return value.is_null() || value == Value(false) || value == Value(int64_t{-1}) ||
         (value.is_list() && value.as_list().empty()) || (value.is_map() && value.as_map().empty());
}

const Value* find_in_map(const Value& value, std::string_view key) {
  const Value* found = value.is_map() ? value.as_map().find(key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool is_registered(const Catalogue& catalogue, std::string_view name) {
  return std::ranges::any_of(catalogue.registrations(),
                             [&](const Registration& each) { return each.name == name; });
}

const Registration* find_component(std::string_view role, std::string_view name) {
  for (const Catalogue* catalogue : Catalogue::all()) {
    if (catalogue->role() != role) continue;
    for (const Registration& each : catalogue->registrations()) {
      if (each.name == name) return &each;
    }
  }
  return nullptr;
}

void read_words_of_truth(Value& value) {
  if (value.is_map()) {
    for (auto& [key, below] : value.as_map()) read_words_of_truth(below);
  } else if (value.is_list()) {
    for (auto& below : value.as_list()) read_words_of_truth(below);
  } else if (value.is_text()) {
    std::string word = value.as_text();
    std::transform(word.begin(), word.end(), word.begin(), [](char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    if (word == "yes" || word == "on") value = Value(true);
    if (word == "no" || word == "off") value = Value(false);
  }
}

}  // namespace stepop
