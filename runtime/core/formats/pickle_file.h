#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A value of a pickle of Python. Objects are kept as what would make them, a name with arguments
/// and a state; nothing is called.
struct PickleValue {
  using Pointer = PickleValue*;  ///< To another value of the same pickle.
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kList, kDict, kName, kObject, kMark };

  Kind kind = Kind::kNone;
  int64_t number = 0;
  double real = 0;
  std::string text = {};            ///< Of texts and bytes; of a name `module name`.
  std::vector<Pointer> items = {};  ///< Of lists and tuples; of a dict keys and values in turns; of
                                    ///< an object its name and its arguments.
  Pointer state = nullptr;          ///< Of an object.

  /// Of a dict, the value of a key that is a text; null when there is none.
  const PickleValue* find(std::string_view key) const;
};

/// All values of a pickle, which may lead to each other in circles.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

/// Reads a pickle of protocols 0 to 5, as far as plain data and NumPy's arrays need them. Throws
/// Error that begins with `name` for anything else. Memory is bounded by that of the bytes.
Pickle read_pickle(std::string_view bytes, const std::string& name);

/// The bytes of an array of NumPy in a pickle. Throws Error that begins with `name` unless it is
/// one of uint8 [rows, columns] in C order.
std::string_view pickled_bytes(const PickleValue& value, int64_t& rows, int64_t columns,
                               const std::string& name);

}  // namespace stepop
