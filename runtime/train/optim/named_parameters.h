#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace stepop {

/// Parameters by name.
struct NamedParameters : std::vector<std::pair<std::string, at::Tensor>> {
  using std::vector<std::pair<std::string, at::Tensor>>::vector;

  /// The networks of the config that they are of, if any: of several, each name begins with that of
  /// its network and a dot; of one, none does.
  std::vector<std::string> networks;

  /// The names in the other form, with that of their network where they lack it, or without.
  std::vector<std::string> other_names() const;
};

/// The names of parameters for a message: `a, b (also c), d and 12 more`.
std::string list_names(const NamedParameters& parameters);

/// The names of one tensor: `b (also c)`.
std::string tied_text(const std::vector<std::string>& names);

}  // namespace stepop
