#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A value in a Python pickle. An object is kept as a name with arguments and a state, from which
/// Python would make it; nothing is called. An OrderedDict is a dict, a set is a list.
struct PickleValue {
  using Pointer = PickleValue*;  ///< Points to another value of the same pickle.
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kList, kDict, kName, kObject, kOutside };

  Kind kind = Kind::kNone;
  int64_t number = 0;
  double real = 0;
  std::string text = {};            ///< The content of a text or bytes; `module name` for a name;
                                    ///< the bytes, or digits, of an integer with more
                                    ///< than 64 bits.
  std::vector<Pointer> items = {};  ///< The items of a list or tuple; a dict's keys and values,
                                    ///< alternating; an object's name and arguments, and what was
                                    ///< put into it; what names a value outside of the pickle.
  Pointer state = nullptr;          ///< The state of an object.

  /// In a dict, the value of a text key; null when the dict does not have the key.
  const PickleValue* find(std::string_view key) const;
};

/// All values of a pickle; they may refer to each other in circles.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
  size_t size = 0;  ///< Of the pickle, in bytes: others may follow.
};

/// Reads a pickle of protocols 1 to 5, as far as data and objects need them. Throws
/// Error that begins with `name` for anything else, and for values that take more memory than
/// is_too_much_unpacked allows for the bytes that they were read from.
Pickle read_pickle(std::string_view bytes, const std::string& name);

}  // namespace stepop
