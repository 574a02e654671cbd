// Parameters that are declared once: from one declaration come the values, the messages about wrong
// ones, `stepop list` and the schema.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameter.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// What a number or a text may be, for `Parameters::add`.
struct Allowed {
  Allowed() = default;
  Allowed(Range numbers) : range(numbers) {}                              // NOLINT
  Allowed(std::vector<std::string> names) : choices(std::move(names)) {}  // NOLINT

  Range range;
  std::vector<std::string> choices;
};
/// `one_of({"cos", "linear"})`.
inline Allowed one_of(std::vector<std::string> names) { return {std::move(names)}; }

/// How a type is read and shown. Specialize it for a type of your own.
template <class T>
struct ParameterOf {
  static T read(const Config& config, std::string_view path, const Allowed& allowed);
  /// A default, for the saved config and for `stepop list`.
  static Value shown(const T& value);
  /// As in ParameterType.
  static std::string kind();
};
template <class T>
struct ParameterOf<std::optional<T>> {
  static std::optional<T> read(const Config& config, std::string_view path,
                               const Allowed& allowed) {
    return ParameterOf<T>::read(config, path, allowed);
  }
  static Value shown(const std::optional<T>& value) {
    return value ? ParameterOf<T>::shown(*value) : Value();
  }
  static std::string kind() { return ParameterOf<T>::kind(); }
};

/// Binds the members of a struct to the keys of a config. A component declares its parameters once:
///
///     struct Params {
///       double from = 0;
///       double power = 1;
///
///       void declare(Parameters& p) {
///         p.require("from", from, "the number at step 0");
///         p.add("power", power, "of the part of the steps that is left", above(0));
///       }
///     };
///
/// The value that a member has before is the default. Types of members: bool, int64_t, double,
/// std::string, Value, vectors of int64_t, double and std::string, std::array<double, 2>, and
/// std::optional of them, for parameters whose absence means something.
class Parameters {
 public:
  /// Only describes: no value is read.
  Parameters() = default;
  /// Reads what `config` has, in the order of the declaration. `add` and `require` throw UsageError
  /// with the place for a value of another type, or one that is not allowed.
  explicit Parameters(const Config& config) : config_(config) {}

  /// A parameter that may be missing.
  template <class T>
  void add(std::string_view name, T& value, std::string_view about, Allowed allowed = {}) {
    if (is_given(name, ParameterOf<T>::shown(value), about, ParameterOf<T>::kind(), allowed)) {
      value = ParameterOf<T>::read(*config_, name, allowed);
    }
  }

  /// A parameter that has to be given.
  template <class T>
  void require(std::string_view name, T& value, std::string_view about, Allowed allowed = {}) {
    if (is_needed(name, about, ParameterOf<T>::kind(), allowed)) {
      value = ParameterOf<T>::read(*config_, name, allowed);
    }
  }

  /// Declares a parameter that its owner reads; returns the config to read it from, null when the
  /// parameters are only described.
  const Config* describe(Parameter parameter);
  /// The same for one that has to be given. `kind` as in ParameterType.
  const Config* describe_required(std::string_view name, std::string kind, std::string_view about);
  /// The same for one whose absence means something: null also when it is missing.
  const Config* describe_optional(std::string_view name, std::string kind, std::string_view about);

  const std::vector<Parameter>& all() const { return all_; }

 private:
  /// Adds the row. Whether the config has the parameter; if not, notes the default.
  bool is_given(std::string_view name, const Value& usual, std::string_view about, std::string kind,
                const Allowed& allowed);
  /// Adds the row. Whether there is a config to read from.
  bool is_needed(std::string_view name, std::string_view about, std::string kind,
                 const Allowed& allowed);

  std::optional<Config> config_;
  std::vector<Parameter> all_;
};

/// The parameters of a struct as `config` gives them.
template <class Params>
Params read_parameters(const Config& config) {
  Params params;
  Parameters reader(config);
  params.declare(reader);
  return params;
}

template <class Params>
std::vector<Parameter> parameters_of() {
  Params params;
  Parameters described;
  params.declare(described);
  return described.all();
}

/// A class whose nested struct `Params` declares its parameters.
template <class T>
concept HasParams = requires(typename T::Params params, Parameters& p) {
  params.declare(p);
};

}  // namespace stepop
