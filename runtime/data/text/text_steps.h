#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

class JsonPart;

// The steps in a tokenizer.json before the words of a text become tokens, and after tokens become a
// text, as in the package `tokenizers`. Each throws Error for unsupported settings.

/// A part of a text on its way to tokens.
struct Piece {
  std::string text;
  bool is_first = false;  ///< The piece is at the beginning of the text.
};

using Normalizer = std::function<std::string(std::string)>;
using PreTokenizer = std::function<std::vector<Piece>(std::vector<Piece>)>;
/// Takes the texts of tokens and returns changed texts, which joined together are the decoded text.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

Normalizer read_normalizer(const JsonPart& part);
PreTokenizer read_pre_tokenizer(const JsonPart& part);
Decoder read_decoder(const JsonPart& part);

/// For each byte, the character that represents it in a byte-level vocabulary, as UTF-8. Visible
/// characters represent themselves; the other bytes use characters from U+0100 on.
const std::array<std::string, 256>& byte_characters();

/// The bytes that the characters of `text` represent; `text` itself when a character represents no
/// byte.
std::string bytes_of_characters(std::string_view text);

/// `text` with `what` replaced by `by`.
std::string replaced_text(std::string_view text, std::string_view what, std::string_view by);

}  // namespace stepop
