#pragma once

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

}  // namespace stepop
