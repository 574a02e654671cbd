#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace stepop {

/// How to write NaN and infinity, which JSON lacks.
enum class NonFiniteJson {
  kText,    ///< As the texts "NaN", "Infinity" and "-Infinity", so that any program reads the file.
  kPython,  ///< As the words NaN, Infinity and -Infinity, like Python's module json.
};

/// A number in JSON: the shortest text that reads as the same double, with a point or an exponent,
/// so that it is not an integer.
std::string json_number(double value, NonFiniteJson non_finite = NonFiniteJson::kText);

/// The value of `NaN`, `Infinity` or `-Infinity`; nothing for another word.
std::optional<double> non_finite_number(std::string_view word);

/// A text in JSON, with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

// Each file that calls nlohmann's parser or writer itself compiles it anew, which takes two
// seconds.

/// The JSON of a whole text. Throws nlohmann::json::exception for another text.
nlohmann::json read_json(std::string_view text);
nlohmann::ordered_json read_ordered_json(std::string_view text);

/// The same, but `is_discarded()` for another text.
nlohmann::json try_read_json(std::string_view text);
nlohmann::ordered_json try_read_ordered_json(std::string_view text);

/// JSON on one line, or with each value on its own, `indent` spaces deeper than what holds it.
/// Bytes that are not UTF-8 become U+FFFD.
std::string write_json(const nlohmann::json& json, int indent = -1);
std::string write_json(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace stepop
