#include "runtime/tools/cli/flags.h"

#include <utility>

namespace stepop {

bool Flag::is(const std::string& word) const {
  return (letter != 0 && word == std::string("-") + letter) || word == "--" + name;
}

void Flags::add(FlagName name, bool& target, std::string about, Flag::Takes takes) {
  all_.push_back({name.letter, name.name, takes, std::move(about),
                  [&target](const auto& values) { target = values.back() == "true"; }});
}

void Flags::add(FlagName name, std::optional<std::string>& target, std::string about) {
  all_.push_back({name.letter, name.name, Flag::Takes::kValue, std::move(about),
                  [&target](const auto& values) { target = values.back(); }});
}

void Flags::add(FlagName name, std::function<void(const std::string&)> set, std::string about) {
  all_.push_back({name.letter, name.name, Flag::Takes::kValue, std::move(about),
                  [set = std::move(set)](const auto& values) { set(values.back()); }});
}

void Flags::add(FlagName name, std::vector<std::string>& target, std::string about,
                Flag::Takes takes) {
  all_.push_back({name.letter, name.name, takes, std::move(about),
                  [&target](const auto& values) { target = values; }});
}

}  // namespace stepop
