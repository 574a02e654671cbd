#include "runtime/distributed/failure.h"

#include <nlohmann/json.hpp>

namespace stepop {

std::string to_text(const Failure& failure) {
  return nlohmann::json{
      {"rank", failure.rank}, {"exit_code", failure.exit_code}, {"text", failure.text}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Failure failure_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {.text = text};
  return {.rank = json.value("rank", -1),
          .exit_code = json.value("exit_code", 1),
          .text = json.value("text", "")};
}

}  // namespace stepop
