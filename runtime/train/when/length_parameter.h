// Lengths in training steps as parameters of components: 5000, 20e, 95%, end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameters.h"

namespace stepop {

/// A length that has to be given, of `least` steps or more. `begin` is the training step where it
/// begins, for `end`. Errors as `read_length`.
void require_length(Parameters& p, std::string_view name, int64_t& steps, int64_t least,
                    std::string_view about, int64_t begin = 0);

/// A length that may be missing; `steps` are then as before, or as many epochs where CountsEpochs
/// says so.
void add_length(Parameters& p, std::string_view name, int64_t& steps, int64_t least,
                std::string_view about);

/// A length whose absence means something; `steps` are then as before.
void add_optional_length(Parameters& p, std::string_view name, int64_t& steps, int64_t least,
                         std::string_view about);

/// Lengths that have to be given, of 0 or more: `[3000, 5000]`, `[30e, 50e]`.
void require_lengths(Parameters& p, std::string_view name, std::vector<int64_t>& steps,
                     std::string_view about);

/// Lengths that may be missing; `steps` are then as before.
void add_optional_lengths(Parameters& p, std::string_view name, std::vector<int64_t>& steps,
                          std::string_view about);

}  // namespace stepop
