#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// What depends on a key. Flags, joined with `|`.
enum KeyUse : unsigned {
  kForAll = 0,
  kForTraining = 1U << 0U,    ///< An evaluation without a training ignores the key.
  kForEvaluation = 1U << 1U,  ///< A training ignores the key.
  kSameBits = 1U << 2U,       ///< No bit of the weights and of the logged numbers depends on it.
  kSameCost = 1U << 3U,       ///< The time of a training step does not depend on the key.
  kTuned = 1U << 4U,          ///< `stepop tune` looks for its fastest value.
  kNotInSteps = 1U << 5U,     ///< Left out where steps alone are measured.
};

/// A key of the runtime itself. All other keys belong to components.
struct OwnKey {
  /// `eval_hook/freq`; `*` is any one name, or any place in a list: `evaluations/*/freq`.
  std::string_view path;
  /// Null is always allowed: the key counts as missing.
  ParameterType type;
  std::string_view default_value;  ///< As in a config; `-` for none, `required` for a needed key.
  std::string_view about;          ///< Markdown, in one line.
  unsigned uses = kForAll;
};

/// The keys, in the order of the documentation.
std::span<const OwnKey> own_keys();

/// The key that `path` names; null for all other paths.
const OwnKey* find_own_key(std::string_view path);

/// The default of a row, for a key whose row has one: a bool, a number or a text.
Value own_default(std::string_view path);

/// The value of the own key at `path` of `config`, which may be a part of the whole; the default of
/// its row when it is missing. Throws UsageError with the place for a value that the row does not
/// allow. T: bool, int64_t, double or std::string.
template <class T>
T own_key(const Config& config, std::string_view path);

/// The keys at the top of a config that have all of `uses`, by their own row or because all rows
/// below them have: `checkpoints`, `log_freq`.
std::vector<std::string> top_keys_with(unsigned uses);

/// The paths of all own keys in this config, with a path for each name that stands at a `*`.
std::vector<std::string> own_key_paths(const Config& config);

/// Makes all own keys of the config known, so that none is reported as unknown in a mode that does
/// not read it, and a misspelt key is compared with them.
void declare_own_keys(const Config& config);

/// Texts about keys that the command line sets and that only the other mode reads: a training, or
/// an evaluation without one. Each begins with its place.
std::vector<std::string> idle_keys(const Config& config, bool train);

/// The meaning of a key without Markdown's links and backquotes.
std::string plain_about(std::string_view markdown);

}  // namespace stepop
