#include "runtime/train/distributed/failure.h"

#include <nlohmann/json.hpp>

namespace stepop {

std::string to_text(const Failure& failure) {
  return nlohmann::json{
      {"rank", failure.rank}, {"exit_code", failure.exit_code}, {"text", failure.text}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Failure failure_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    const int exit_code = json.at("exit_code").get<int>();
    return {.rank = json.at("rank").get<int>(),
            .exit_code = exit_code > 0 && exit_code < 256 ? exit_code : 1,
            .text = json.at("text").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return {.text = text};
  }
}

}  // namespace stepop
