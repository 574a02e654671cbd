#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/base/unicode.h"
#include "runtime/data/text/json_part.h"
#include "runtime/data/text/text_steps.h"

namespace stepop {
namespace {

using Tokens = std::vector<std::string>;

std::string together(const Tokens& tokens) {
  std::string text;
  for (const auto& token : tokens) text += token;
  return text;
}

/// The byte that a token `<0x0A>` stands for.
std::optional<char> byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

Tokens bytes_joined(const Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (is_utf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) out.push_back("\xef\xbf\xbd");
    }
    bytes.clear();
  };
  for (const auto& token : tokens) {
    if (const auto byte = byte_of(token)) {
      bytes += *byte;
      continue;
    }
    flush();
    out.push_back(token);
  }
  flush();
  return out;
}

Decoder for_each_token(std::function<std::string(const std::string&, size_t, size_t)> change) {
  return [=](Tokens tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = change(tokens[i], i, tokens.size());
    return tokens;
  };
}

Decoder read_strip(const JsonPart& part) {
  const auto what = part.text("content");
  constexpr int32_t kMost = 1000;
  const int32_t start = part.at("start").number(kMost);
  const int32_t stop = part.at("stop").number(kMost);
  if (what.empty()) throw part.error("\"content\" is empty");
  return for_each_token([=](std::string text, size_t, size_t) {
    for (int32_t i = 0; i < start && text.starts_with(what); ++i) text.erase(0, what.size());
    for (int32_t i = 0; i < stop && text.ends_with(what); ++i) {
      text.resize(text.size() - what.size());
    }
    return text;
  });
}

Decoder read_decoder_of_metaspace(const JsonPart& part) {
  const auto mark = part.text("replacement", "\xe2\x96\x81");
  if (mark.empty()) throw part.error("\"replacement\" is empty");
  const auto scheme =
      part.text("prepend_scheme", part.flag("add_prefix_space", true) ? "always" : "never");
  return for_each_token([=](const std::string& text, size_t i, size_t) {
    return replaced_text(text, mark, i == 0 && scheme != "never" ? "" : " ");
  });
}

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  static const auto characters = [] {
    std::array<std::string, 256> made;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool is_seen =
          (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      append_character(made[byte], is_seen ? byte : next++);
    }
    return made;
  }();
  return characters;
}

std::string bytes_of_characters(std::string_view text) {
  static const auto bytes = [] {
    std::unordered_map<std::string_view, char> made;
    for (size_t i = 0; i < 256; ++i) made[byte_characters()[i]] = static_cast<char>(i);
    return made;
  }();
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    next_character(text, at);
    const auto found = bytes.find(text.substr(begin, at - begin));
    if (found == bytes.end()) return std::string(text);
    out += found->second;
  }
  return out;
}

Decoder read_decoder(const JsonPart& part) {
  const auto type = part.text("type");
  if (type == "ByteLevel") {
    return [](const Tokens& tokens) {
      std::string bytes;
      for (const auto& token : tokens) bytes += bytes_of_characters(token);
      return Tokens{with_replacements(bytes)};
    };
  }
  if (type == "ByteFallback") return bytes_joined;
  if (type == "Fuse") return [](const Tokens& tokens) { return Tokens{together(tokens)}; };
  if (type == "Strip") return read_strip(part);
  if (type == "Metaspace") return read_decoder_of_metaspace(part);
  if (type == "Replace") {
    const auto what = part.at("pattern").text("String");
    const auto by = part.text("content");
    if (what.empty()) throw part.error("an empty text cannot be replaced");
    return for_each_token(
        [=](const std::string& text, size_t, size_t) { return replaced_text(text, what, by); });
  }
  if (type == "BPEDecoder") {
    const auto suffix = part.text("suffix", "</w>");
    if (suffix.empty()) throw part.error("\"suffix\" is empty");
    return for_each_token([=](const std::string& text, size_t i, size_t count) {
      return replaced_text(text, suffix, i + 1 == count ? "" : " ");
    });
  }
  if (type == "Sequence") {
    std::vector<Decoder> steps;
    for (const auto& item : part.at("decoders").items()) steps.push_back(read_decoder(item));
    return [=](Tokens tokens) {
      for (const auto& step : steps) tokens = step(std::move(tokens));
      return tokens;
    };
  }
  throw part.unsupported(
      type, "ByteLevel, ByteFallback, Fuse, Strip, Metaspace, Replace, BPEDecoder, Sequence");
}

}  // namespace stepop
