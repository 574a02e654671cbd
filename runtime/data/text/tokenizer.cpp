#include "runtime/data/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/unicode.h"
#include "runtime/core/system/mapped_file.h"
#include "runtime/data/dataset.h"

namespace stepop {

TokenizerRegistry& tokenizers() {
  static TokenizerRegistry registry("tokenizer");
  return registry;
}

std::unique_ptr<Tokenizer> read_tokenizer(const Config& config, std::string_view key) {
  return tokenizers().build(config, key);
}

namespace {

class Bytes : public Tokenizer {
 public:
  explicit Bytes(const Config&) {}

  int64_t vocabulary_size() const override { return 256; }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const int64_t> ids) const override {
    std::string bytes;
    for (const int64_t id : ids) {
      if (id < 0 || id > 255) throw Error(fmt::format("no byte has the number {}", id));
      bytes += static_cast<char>(id);
    }
    return with_replacements(bytes);
  }
  std::optional<int64_t> id_of(std::string_view token) const override {
    if (token.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(token[0]);
  }
  bool is_of_bytes() const override { return true; }
  uint64_t fingerprint() const override { return seed_of("bytes"); }
};

/// The characters of a text, sorted by code point.
class Characters : public Tokenizer {
 public:
  struct Params {
    InputFile of;
    std::optional<std::string> unknown;

    void declare(Parameters& p) {
      p.require("of", of, "the text whose characters there are, such as the training data");
      p.add("unknown", unknown, "the character that stands for others; null: those are an error");
    }
  };

  Characters(const Params& params, const Config& config) : ids_(0x110000, -1) {
    const std::string& path = params.of.text;
    const MappedFile file(path);
    const std::string_view text = file.bytes();
    for (size_t at = 0; at < text.size();) {
      if (utf8_length(text.substr(at, 4)) == 0) {
        throw Error(
            fmt::format("{}: byte {:#04x} at {} is not UTF-8; tokenizer: bytes takes any "
                        "file",
                        path, static_cast<unsigned char>(text[at]), at));
      }
      ids_[next_character(text, at)] = 0;
    }
    const std::string unknown = params.unknown.value_or("");
    size_t end = 0;
    if (!unknown.empty()) {
      if (utf8_length(unknown) != unknown.size()) {
        throw config.error("unknown", "expected one character, such as \"?\"");
      }
      unknown_ = next_character(unknown, end);
      ids_[*unknown_] = 0;
    }
    for (char32_t c = 0; c < ids_.size(); ++c) {
      if (ids_[c] < 0) continue;
      ids_[c] = static_cast<int32_t>(characters_.size());
      characters_.push_back(c);
      append_character(alphabet_, c);
    }
    if (characters_.empty()) throw config.error("of", "the file is empty: " + path);
  }

  int64_t vocabulary_size() const override { return static_cast<int64_t>(characters_.size()); }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (size_t at = 0; at < text.size();) {
      if (utf8_length(text.substr(at, 4)) == 0) throw Error("the text is not UTF-8");
      const size_t begin = at;
      int32_t id = ids_[next_character(text, at)];
      if (id < 0 && unknown_) id = ids_[*unknown_];
      if (id < 0) {
        throw Error(
            fmt::format("the character \"{}\" is not among the {} of the tokenizer's text; "
                        "unknown: \"?\" would read it as that",
                        text.substr(begin, at - begin), characters_.size()));
      }
      ids.push_back(id);
    }
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const int64_t id : ids) {
      if (id < 0 || id >= vocabulary_size()) {
        throw Error(fmt::format("no character has the id {}: there are {}", id, vocabulary_size()));
      }
      append_character(text, characters_[static_cast<size_t>(id)]);
    }
    return text;
  }

  std::optional<int64_t> id_of(std::string_view token) const override {
    if (token.empty() || utf8_length(token) != token.size()) return std::nullopt;
    size_t at = 0;
    const int32_t id = ids_[next_character(token, at)];
    return id < 0 ? std::nullopt : std::optional<int64_t>(id);
  }

  uint64_t fingerprint() const override {
    return mix_seed({seed_of("characters"), seed_of(alphabet_), unknown_.value_or(0)});
  }

 private:
  std::vector<int32_t> ids_;  ///< The id of each character; -1 for characters that the text does
                              ///< not have.
  std::vector<char32_t> characters_;
  std::string alphabet_;
  std::optional<char32_t> unknown_;
};

STEPOP_REGISTER_TOKENIZER(bytes, Bytes, {"Each byte is a token: 256 ids, for any file.", {}});
STEPOP_REGISTER_TOKENIZER(
    characters, Characters,
    {"Each character is a token; its id is its place among those of a text."});

}  // namespace
}  // namespace stepop
