#include "runtime/core/formats/json_file.h"

#include <fmt/format.h>

#include "runtime/core/base/error.h"

namespace stepop {

nlohmann::json parse_json(std::string_view text, const std::string& what,
                          const nlohmann::json::parser_callback_t& check) {
  try {
    return nlohmann::json::parse(text, check);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(fmt::format("{} is not valid JSON (at its byte {})", what, error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw Error(what + " has a number that is too large");
  }
}

}  // namespace stepop
