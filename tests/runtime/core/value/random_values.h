#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// Config values of all kinds, from a seed: small trees of them, with the texts and numbers that
/// writers and readers of YAML get wrong.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : engine_(seed) {}

  /// A whole number from 0 to `count` - 1.
  size_t below(size_t count) { return engine_() % count; }

  /// A value whose lists and maps nest at most `depth` deep.
  Value value(int depth) {
    const size_t kind = below(depth > 0 ? 8 : 5);
    if (kind == 0) return {};
    if (kind == 1) return below(2) == 0;
    if (kind == 2) return integer();
    if (kind == 3) return number();
    if (kind == 4) return text();
    if (kind == 5) {
      Value::List list;
      for (size_t i = below(5); i > 0; --i) list.push_back(value(depth - 1));
      return list;
    }
    Value::Map map;
    for (size_t i = below(5); i > 0; --i) map.set(key(), value(depth - 1));
    return map;
  }

  Value integer() {
    const std::vector<int64_t> edges = {0, -1, 10, std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
    if (below(3) == 0) return edges[below(edges.size())];
    return static_cast<int64_t>(engine_()) >> below(64);
  }

  Value number() {
    const std::vector<double> edges = {0.0,   -0.0,         0.1,      1e22,     1e16,
                                       1e15,  5e-324,       1.0,      1e-5,     1.7e308,
                                       123.0, std::nan(""), HUGE_VAL, -HUGE_VAL};
    if (below(3) == 0) return edges[below(edges.size())];
    const double any = std::bit_cast<double>(engine_());
    return std::isnan(any) ? std::nan("") : any;
  }

  std::string text() {
    static const std::vector<std::string> parts = {"a",
                                                   "B",
                                                   "0",
                                                   "1e3",
                                                   "-",
                                                   ".",
                                                   ":",
                                                   ": ",
                                                   " ",
                                                   "#",
                                                   " #",
                                                   "\"",
                                                   "'",
                                                   "\\",
                                                   "\n",
                                                   "\r",
                                                   "\t",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   "&",
                                                   "*",
                                                   "!",
                                                   "|",
                                                   ">",
                                                   "%",
                                                   "@",
                                                   "`",
                                                   "=",
                                                   "<<",
                                                   "~",
                                                   "null",
                                                   "yes",
                                                   "true",
                                                   "0x1f",
                                                   "0o7",
                                                   ".inf",
                                                   ".nan",
                                                   "?",
                                                   "/",
                                                   "_",
                                                   "\x01",
                                                   "\x04",
                                                   "\x7f",
                                                   "\x1b",
                                                   "\xc3\xa4",
                                                   "\xc2\x85",
                                                   "\xe2\x80\xa8",
                                                   "\xef\xbb\xbf",
                                                   "\xf0\x9f\x98\x80",
                                                   "2026-11-21",
                                                   "12:30",
                                                   "---",
                                                   "...",
                                                   std::string(1, '\0'),
                                                   std::string(100, 'x')};
    std::string text;
    for (size_t i = below(5); i > 0; --i) text += parts[below(parts.size())];
    return text;
  }

  /// Text that can be a key: not empty, without the slash of paths, not too long.
  std::string key() {
    std::string key = text();
    std::erase(key, '/');
    if (key.size() > kMaxKeyBytes) key.resize(kMaxKeyBytes - 100);  // ends within 100 times x
    return key.empty() ? "k" : key;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace stepop
