#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepop {

/// Parses JSON from a file of another program. `what` is the subject of errors: throws Error with
/// `the header is not valid JSON (at its byte 6)` or `the header has a number that is too large`.
/// `check` is called with each part of the JSON; its exceptions pass through.
nlohmann::json parse_json(std::string_view text, const std::string& what,
                          const nlohmann::json::parser_callback_t& check = nullptr);

}  // namespace stepop
