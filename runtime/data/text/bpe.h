#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stepop {

/// The parts of a BPE model.
struct BpeParts {
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  ///< In the order in which they are
                                                            ///< applied.
  std::optional<std::string> unknown;
  std::string continuing_prefix;  ///< The prefix of all characters of a word except the first.
  std::string end_suffix;         ///< The suffix of the last character of a word.
  bool fuse_unknown = false;
  bool byte_fallback = false;  ///< Unknown characters are written as bytes, `<0x0A>`.
  bool ignore_merges = false;  ///< A word that is a token is that token, without merges.
};

/// Byte pair encoding (Sennrich, Haddow and Birch 2016): the characters of a word are merged, pair
/// by pair, in the order of the list of merges; equal pairs are merged from left to right.
class Bpe {
 public:
  /// Throws Error for merges of tokens that are not in the vocabulary.
  explicit Bpe(const BpeParts& parts);

  /// Appends the ids of a word, which is UTF-8.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

  std::optional<int32_t> id_of(std::string_view token) const;

 private:
  struct Merge {
    uint32_t rank;
    int32_t merged;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct PairHash {
    size_t operator()(uint64_t pair) const {
      pair *= 0x9e3779b97f4a7c15;
      return pair ^ pair >> 32;
    }
  };

  static uint64_t pair_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  const Merge* merge_of(int32_t left, int32_t right) const;
  std::vector<int32_t> characters_of(std::string_view word) const;
  void merge(std::vector<int32_t>& symbols) const;

  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> ids_;
  std::unordered_map<uint64_t, Merge, PairHash> merges_;
  std::optional<int32_t> unknown_;
  std::string continuing_prefix_;
  std::string end_suffix_;
  bool fuse_unknown_;
  bool byte_fallback_;
  bool ignore_merges_;
};

}  // namespace stepop
