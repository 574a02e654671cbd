#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepop {

/// JSON of a file from elsewhere. `what` is the subject of errors: throws Error with `the header is
/// not valid JSON (at its byte 6)` or `the header has a number that is too large`, and what `check`
/// throws, which is called with each part as it is read.
nlohmann::json parse_json(std::string_view text, const std::string& what,
                          const nlohmann::json::parser_callback_t& check = nullptr);

}  // namespace stepop
