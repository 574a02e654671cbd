#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

class JsonPart;

// What a tokenizer.json says to do with a text before its words become tokens, and with tokens that
// become a text, as the package `tokenizers` does it. Each throws Error for what is not supported.

/// A part of a text on its way to tokens.
struct Piece {
  std::string text;
  bool is_first = false;  ///< The text begins with it.
};

using Normalizer = std::function<std::string(std::string)>;
using PreTokenizer = std::function<std::vector<Piece>(std::vector<Piece>)>;
/// Takes the texts of tokens, and returns others; all together are the text.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

Normalizer read_normalizer(const JsonPart& part);
PreTokenizer read_pre_tokenizer(const JsonPart& part);
Decoder read_decoder(const JsonPart& part);

/// For each byte the character that stands for it in a byte-level vocabulary, as UTF-8: those that
/// can be seen for themselves, the others from U+0100 on.
const std::array<std::string, 256>& byte_characters();

/// The bytes that the characters of `text` stand for; `text` itself when some stand for none.
std::string bytes_of_characters(std::string_view text);

/// `text` with `what` replaced by `by`.
std::string replaced_text(std::string_view text, std::string_view what, std::string_view by);

}  // namespace stepop
