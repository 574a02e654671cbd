#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/key_hash.h"

namespace stepop {

/// A map from text to T that keeps the order of insertion. Made for few keys, which are searched
/// one by one; many keys get a hash table. Keys must not be changed through iterators.
template <class T>
class OrderedMap {
 public:
  using Entry = std::pair<std::string, T>;

  // A tree's node may have a map of nodes. Clang would need T to be complete for the first two
  // if they were defaulted.
  OrderedMap() {}   // NOLINT(modernize-use-equals-default)
  ~OrderedMap() {}  // NOLINT(modernize-use-equals-default)
  OrderedMap(const OrderedMap&) = default;
  OrderedMap(OrderedMap&&) = default;
  OrderedMap& operator=(const OrderedMap&) = default;
  OrderedMap& operator=(OrderedMap&&) = default;
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
    if (!places_.empty()) {
      const uint32_t place = places_[slot_of(key)];
      return place == 0 ? nullptr : &entries_[place - 1].second;
    }
    for (const auto& entry : entries_) {
      if (entry.first == key) return &entry.second;
    }
    return nullptr;
  }
  T* find(std::string_view key) { return const_cast<T*>(std::as_const(*this).find(key)); }

  /// The value at `key`; throws Error with the existing keys.
  const T& at(std::string_view key) const {
    if (const T* value = find(key)) return *value;
    throw Error("no key \"" + std::string(key) + "\"; there are: " + key_list());
  }

  /// Sets `key`; an existing key keeps its place.
  T& set(std::string_view key, T value) {
    if (T* old = find(key)) return *old = std::move(value);
    entries_.emplace_back(std::string(key), std::move(value));
    if (entries_.size() > kFew) add_place();
    return entries_.back().second;
  }

  /// The value at `key`, default-constructed when it is missing.
  T& operator[](std::string_view key) {
    T* value = find(key);
    return value != nullptr ? *value : set(key, T());
  }

  void erase(std::string_view key) {
    if (!contains(key)) return;
    erase_if([&](const Entry& entry) { return entry.first == key; });
  }

  /// Erases the entries for which `is_unwanted(entry)` holds, all at once.
  template <class Predicate>
  void erase_if(const Predicate& is_unwanted) {
    if (std::erase_if(entries_, is_unwanted) > 0) make_places();
  }

  void clear() {
    entries_.clear();
    places_.clear();
  }

  /// Equal keys and values in the same order.
  bool operator==(const OrderedMap& other) const { return entries_ == other.entries_; }

  /// The keys, separated by commas, for messages.
  std::string key_list() const {
    std::string text;
    for (const auto& entry : entries_) {
      if (!text.empty()) text += ", ";
      text += entry.first;
    }
    return text.empty() ? "none" : text;
  }

 private:
  static constexpr size_t kFew = 16;

  /// The slot of `key` in `places_`, or the free slot for it.
  size_t slot_of(std::string_view key) const {
    const size_t last = places_.size() - 1;
    size_t slot = KeyHash()(key) & last;
    while (places_[slot] != 0 && entries_[places_[slot] - 1].first != key) slot = (slot + 1) & last;
    return slot;
  }

  /// Called after an entry was added at the end.
  void add_place() {
    if (2 * entries_.size() > places_.size()) return make_places();
    places_[slot_of(entries_.back().first)] = static_cast<uint32_t>(entries_.size());
  }

  void make_places() {
    places_.clear();
    if (entries_.size() <= kFew) return;
    size_t size = 4 * kFew;
    while (size < 4 * entries_.size()) size *= 2;
    places_.resize(size);
    for (size_t i = 0; i < entries_.size(); ++i) {
      places_[slot_of(entries_[i].first)] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  ///< Entries, from 1, by their keys' hashes; empty for few.
};

}  // namespace stepop
