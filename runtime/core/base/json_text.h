#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepop {

/// How NaN and infinities, which JSON lacks, are written.
enum class NonFiniteJson {
  kText,    ///< As the texts "NaN", "Infinity" and "-Infinity", so that any program reads the file.
  kPython,  ///< As the words NaN, Infinity and -Infinity, as Python's module json does.
};

/// A number of JSON: the shortest that reads as the same double, and with a point or an exponent,
/// so that it is no integer.
std::string json_number(double value, NonFiniteJson non_finite = NonFiniteJson::kText);

/// What `NaN`, `Infinity` or `-Infinity` stands for; none for another word.
std::optional<double> non_finite_number(std::string_view word);

/// A text of JSON, in its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace stepop
