#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/value/taken_default.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// Block YAML that reads back as the same types and values; ends with a newline.
std::string to_yaml(const Value& value);

/// The same with a comment for each of these defaults at the place of its key, so that the text
/// still reads back as `value`:
///
///     optimizer:
///       class: Adam
///       # betas: [0.9, 0.999]  # default
///     ckpt_zero: null
///     # ckpt_zero: false  # default
///     # eval_hook:
///     #   freq: 1e  # default
std::string to_yaml(const Value& value, const std::vector<TakenDefault>& defaults);

/// The output of `to_yaml` without its comments.
std::string without_comments(std::string_view yaml);

/// One line of flow YAML: `[1, 2]`, `{a: 1.5, b: text}`.
std::string flow_yaml(const Value& value);

/// One line of JSON with the types and values of a resolved config, for programs without YAML: a
/// float has a point or an exponent, an integer has neither. NaN, Infinity and -Infinity, which
/// JSON lacks, are written as Python's module json reads them. Braces are not doubled, so the line
/// cannot be loaded as a config.
std::string to_json(const Value& value);

}  // namespace stepop
