#include "runtime/train/when/length_parameter.h"

#include <string>

#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

Parameter length(std::string_view name, std::string usual, std::string_view about) {
  return {std::string(name), std::move(usual), std::string(about), false, {.kind = "span"}};
}

Parameter lengths(std::string_view name, std::string usual, std::string_view about) {
  return {std::string(name), std::move(usual), std::string(about), false, {.kind = "list of span"}};
}

}  // namespace

void require_length(Parameters& p, std::string_view name, int64_t& steps, int64_t least,
                    std::string_view about, int64_t begin) {
  const Config* config = p.describe(length(name, "", about));
  if (config != nullptr) steps = read_length(*config, name, least, begin);
}

void add_length(Parameters& p, std::string_view name, int64_t& steps, int64_t least,
                std::string_view about) {
  const Config* config = p.describe(length(name, std::to_string(steps), about));
  if (config != nullptr) steps = read_length_or(*config, name, least, steps);
}

void add_optional_length(Parameters& p, std::string_view name, int64_t& steps, int64_t least,
                         std::string_view about) {
  const Config* config = p.describe(length(name, "none", about));
  if (config != nullptr && config->has(name)) steps = read_length(*config, name, least);
}

void require_lengths(Parameters& p, std::string_view name, std::vector<int64_t>& steps,
                     std::string_view about) {
  const Config* config = p.describe(lengths(name, "", about));
  if (config != nullptr) steps = read_lengths(*config, name);
}

void add_optional_lengths(Parameters& p, std::string_view name, std::vector<int64_t>& steps,
                          std::string_view about) {
  const Config* config = p.describe(lengths(name, "none", about));
  if (config != nullptr && config->has(name)) steps = read_lengths(*config, name);
}

}  // namespace stepop
