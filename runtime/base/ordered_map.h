#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace stepop {

/// A map from text to T that keeps the order of insertion. Made for few keys: look-up is linear.
template <class T>
class OrderedMap {
 public:
  using Entry = std::pair<std::string, T>;

  OrderedMap() = default;
  OrderedMap(std::initializer_list<Entry> entries) {
    for (const auto& [key, value] : entries) set(key, value);
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  /// The value at `key`, or null.
  const T* find(std::string_view key) const {
    for (const auto& entry : entries_) {
      if (entry.first == key) return &entry.second;
    }
    return nullptr;
  }
  T* find(std::string_view key) { return const_cast<T*>(std::as_const(*this).find(key)); }

  /// The value at `key`; throws Error with the keys that there are.
  const T& at(std::string_view key) const {
    if (const T* value = find(key)) return *value;
    throw Error("no key \"" + std::string(key) + "\"; there are: " + key_list());
  }

  /// Sets `key`, in its old place when it is there already.
  T& set(std::string_view key, T value) {
    if (T* old = find(key)) return *old = std::move(value);
    return entries_.emplace_back(std::string(key), std::move(value)).second;
  }

  /// The value at `key`, made by default when it is not there.
  T& operator[](std::string_view key) {
    T* value = find(key);
    return value != nullptr ? *value : set(key, T());
  }

  void erase(std::string_view key) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.first == key; });
  }

  void clear() { entries_.clear(); }

  /// Equal keys and values in the same order.
  bool operator==(const OrderedMap& other) const { return entries_ == other.entries_; }

  /// The keys, separated by commas, for messages.
  std::string key_list() const {
    std::string text;
    for (const auto& entry : entries_) text += (text.empty() ? "" : ", ") + entry.first;
    return text.empty() ? "none" : text;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace stepop
