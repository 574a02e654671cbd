#include "runtime/core/base/ordered_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stepop {
namespace ordered_map_test {

TEST_CASE("a map of any size holds what a list of pairs does, in its order") {
  std::mt19937_64 random(3);
  OrderedMap<int> map;
  std::vector<std::pair<std::string, int>> expected;
  const auto place = [&](const std::string& key) {
    return std::find_if(expected.begin(), expected.end(),
                        [&](const auto& entry) { return entry.first == key; });
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string key = "key " + std::to_string(random() % 60);
    const auto found = place(key);
    switch (random() % 8) {
      case 0:
        map.erase(key);
        if (found != expected.end()) expected.erase(found);
        break;
      case 1:
        if (random() % 20 > 0) break;
        map.erase_if([](const auto& entry) { return entry.second % 2 == 0; });
        std::erase_if(expected, [](const auto& entry) { return entry.second % 2 == 0; });
        break;
      case 2:
        if (random() % 300 > 0) break;
        map.clear();
        expected.clear();
        break;
      default:
        map.set(key, i);
        if (found != expected.end()) {
          found->second = i;
        } else {
          expected.emplace_back(key, i);
        }
    }
    const std::string other = "key " + std::to_string(random() % 60);
    const auto there = place(other);
    REQUIRE((map.find(other) == nullptr) == (there == expected.end()));
    if (there != expected.end()) REQUIRE(map.at(other) == there->second);
    REQUIRE(std::equal(map.begin(), map.end(), expected.begin(), expected.end()));
  }
}

TEST_CASE("keys that are chosen to collide, with the standard library's hash, do not") {
  constexpr size_t kLast = 4095;
  std::set<size_t> hashes;
  int collisions = 0;
  for (int i = 0; collisions < 64; ++i) {
    const std::string key = "key " + std::to_string(i);
    if ((std::hash<std::string>()(key) & kLast) != 0) continue;
    hashes.insert(KeyHash()(key) & kLast);
    ++collisions;
  }
  CHECK(hashes.size() > 48);  // 63.5 on average
}

TEST_CASE("copies, and what is left of a map that was moved, are maps of their own") {
  OrderedMap<int> map;
  for (int i = 0; i < 100; ++i) map.set(std::to_string(i), i);
  OrderedMap<int> copy = map;
  copy.erase("5");
  copy["100"] = 100;
  CHECK(map.contains("5"));
  CHECK_FALSE(map.contains("100"));
  CHECK(copy.at("99") == 99);
  const OrderedMap<int> moved = std::move(map);
  CHECK(moved.at("99") == 99);
  map.clear();
  map.set("a", 1);
  CHECK(map.key_list() == "a");
}

}  // namespace ordered_map_test
}  // namespace stepop
