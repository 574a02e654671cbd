#include "runtime/data/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/unicode.h"

namespace stepop {

Bpe::Bpe(const BpeParts& parts)
    : continuing_prefix_(parts.continuing_prefix),
      end_suffix_(parts.end_suffix),
      fuse_unknown_(parts.fuse_unknown),
      byte_fallback_(parts.byte_fallback),
      ignore_merges_(parts.ignore_merges) {
  ids_.reserve(parts.vocabulary.size());
  for (const auto& [token, id] : parts.vocabulary) ids_[token] = id;
  const auto known = [&](const std::string& token, const std::string& of) {
    if (const auto id = id_of(token)) return *id;
    throw Error(fmt::format("{} needs the token \"{}\", which is not in the vocabulary", of,
                            shortened(token, 80)));
  };
  if (parts.unknown) unknown_ = known(*parts.unknown, "unk_token");
  merges_.reserve(parts.merges.size());
  for (size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto& [left, right] = parts.merges[rank];
    const std::string place = fmt::format("merge {}", rank);
    const std::string end =
        right.starts_with(continuing_prefix_) ? right.substr(continuing_prefix_.size()) : right;
    // Each id in its own statement, so that an error names the same symbol with every compiler.
    const int32_t left_id = known(left, place);
    const int32_t right_id = known(right, place);
    const int32_t merged_id = known(left + end, place);
    merges_[pair_of(left_id, right_id)] = {static_cast<uint32_t>(rank), merged_id};
  }
}

std::optional<int32_t> Bpe::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const Bpe::Merge* Bpe::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

/// A character without a token is written as bytes, becomes the unknown token, or is left out.
std::vector<int32_t> Bpe::characters_of(std::string_view word) const {
  std::vector<int32_t> symbols;
  bool has_unknown = false;  // an unknown token that is not yet among the symbols
  const auto add_unknown = [&] {
    if (has_unknown) symbols.push_back(*unknown_);
    has_unknown = false;
  };
  std::string decorated;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    next_character(word, at);
    std::string_view character = word.substr(begin, at - begin);
    const bool has_prefix = begin > 0 && !continuing_prefix_.empty();
    const bool has_suffix = at == word.size() && !end_suffix_.empty();
    if (has_prefix || has_suffix) {
      decorated = fmt::format("{}{}{}", has_prefix ? continuing_prefix_ : "", character,
                              has_suffix ? end_suffix_ : "");
      character = decorated;
    }
    if (const auto id = id_of(character)) {
      add_unknown();
      symbols.push_back(*id);
      continue;
    }
    if (byte_fallback_) {
      std::vector<int32_t> bytes;
      for (const char byte : character) {
        if (const auto id = id_of(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)))) {
          bytes.push_back(*id);
        }
      }
      if (bytes.size() == character.size()) {
        symbols.insert(symbols.end(), bytes.begin(), bytes.end());
        continue;
      }
    }
    if (!unknown_) continue;
    if (!fuse_unknown_) add_unknown();
    has_unknown = true;
  }
  add_unknown();
  return symbols;
}

void Bpe::merge(std::vector<int32_t>& symbols) const {
  /// A possible merge at a place.
  struct Candidate {
    uint32_t rank;
    uint32_t at;
    int32_t merged;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  constexpr int32_t kGone = -1;
  const auto size = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> next(size);
  std::vector<uint32_t> previous(size);
  std::vector<Candidate> candidates;
  const auto candidate = [&](uint32_t left, uint32_t right) -> std::optional<Candidate> {
    const Merge* found = merge_of(symbols[left], symbols[right]);
    if (found == nullptr) return std::nullopt;
    return Candidate{found->rank, left, found->merged};
  };
  for (uint32_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // the first element wraps around, so it is never below `size`
    if (i + 1 < size) {
      if (const auto found = candidate(i, i + 1)) candidates.push_back(*found);
    }
  }
  if (candidates.empty()) return;
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const uint32_t at = best.at;
    const uint32_t right = next[at];
    if (symbols[at] == kGone || right >= size) continue;
    // A neighbour may have been merged since.
    const auto now = candidate(at, right);
    if (!now || now->merged != best.merged) continue;
    symbols[at] = best.merged;
    symbols[right] = kGone;
    next[at] = next[right];
    if (next[at] < size) previous[next[at]] = at;
    if (previous[at] < size) {
      if (const auto found = candidate(previous[at], at)) queue.push(*found);
    }
    if (next[at] < size) {
      if (const auto found = candidate(at, next[at])) queue.push(*found);
    }
  }
  std::erase(symbols, kGone);
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    if (const auto id = id_of(word)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<int32_t> symbols = characters_of(word);
  if (symbols.size() > 1) merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

}  // namespace stepop
