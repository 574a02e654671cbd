#include "runtime/data/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "runtime/core/base/text.h"
#include "runtime/core/base/unicode.h"

namespace stepop {
namespace {

/// Where the character before `at` begins.
size_t before(std::string_view text, size_t at) { return cut_position(text, at - 1); }

bool is_word_before(std::string_view text, size_t at) {
  if (at == 0) return false;
  size_t place = before(text, at);
  return is_word_character(next_character(text, place));
}

bool is_word_behind(std::string_view text, size_t at) {
  return at < text.size() && is_word_character(next_character(text, at));
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  auto& others = by_first_byte_[static_cast<unsigned char>(token.content[0])];
  const auto place = std::find_if(others.begin(), others.end(), [&](size_t other) {
    return tokens_[other].content.size() < token.content.size();
  });
  others.insert(place, tokens_.size());
  tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::longest_at(std::string_view text) const {
  for (const size_t place : by_first_byte_[static_cast<unsigned char>(text[0])]) {
    if (text.starts_with(tokens_[place].content)) return &tokens_[place];
  }
  return nullptr;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text) const {
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    const AddedToken* token = longest_at(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t first = at;
    size_t end = at += token->content.size();
    if (token->is_single_word && (is_word_before(text, first) || is_word_behind(text, end))) {
      continue;
    }
    while (token->takes_left && first > done) {
      const size_t place = before(text, first);
      size_t behind = place;
      if (!is_white_space(next_character(text, behind))) break;
      first = place;
    }
    while (token->takes_right && end < text.size()) {
      size_t behind = end;
      if (!is_white_space(next_character(text, behind))) break;
      end = behind;
    }
    if (done < first) parts.push_back({done, first, std::nullopt});
    parts.push_back({std::max(first, done), end, token->id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), std::nullopt});
  return parts;
}

}  // namespace stepop
