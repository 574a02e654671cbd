#include "runtime/train/distributed/failure.h"

#include <nlohmann/json.hpp>

#include "runtime/core/base/json_text.h"

namespace stepop {

std::string to_text(const Failure& failure) {
  return write_json(nlohmann::json{
      {"rank", failure.rank}, {"exit_code", failure.exit_code}, {"text", failure.text}});
}

Failure failure_of(const std::string& text) {
  const auto json = try_read_json(text);
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
