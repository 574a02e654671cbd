#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/registry.h"

namespace stepop {

/// Turns texts into numbers and back. All functions may be called by several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The largest id plus one: the size of an embedding.
  virtual int64_t vocabulary_size() const = 0;

  /// Appends the ids of `text`. Throws Error for a text that cannot be encoded, such as invalid
  /// UTF-8.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;

  /// The same with the tokens that mark the beginning and the end of a text, if there are any.
  virtual void encode_whole(std::string_view text, std::vector<int32_t>& ids) const {
    encode(text, ids);
  }

  /// The text of ids, as UTF-8; invalid bytes become U+FFFD. Throws Error for an unknown id.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;

  /// The id of a token, such as "<|endoftext|>"; none when there is no such token.
  virtual std::optional<int64_t> id_of(std::string_view token) const = 0;

  /// Whether each byte is a token, whose id is the byte.
  virtual bool is_of_bytes() const { return false; }

  /// A number that changes with everything that changes ids. Stored ids are found by it.
  virtual uint64_t fingerprint() const = 0;
};

using TokenizerRegistry = Registry<std::unique_ptr<Tokenizer>(const Config&)>;
TokenizerRegistry& tokenizers();

/// The tokenizer that a config names at `key`: `bytes`, or `{class: bpe, path: tokenizer.json}`.
std::unique_ptr<Tokenizer> read_tokenizer(const Config& config, std::string_view key = "tokenizer");

/// A tokenizer in a component's `Params`.
template <>
struct ParameterOf<std::unique_ptr<Tokenizer>> {
  static std::unique_ptr<Tokenizer> read(const Config& config, std::string_view path,
                                         const Allowed&) {
    return read_tokenizer(config, path);
  }
  static Value shown(const std::unique_ptr<Tokenizer>&) { return {}; }
  static std::string kind() { return "component tokenizer"; }
};

}  // namespace stepop

/// Registers a class with a constructor from its `Params`, and its part of the config if it wants
/// that.
#define STEPOP_REGISTER_TOKENIZER(name, Class, ...)                                           \
  STEPOP_REGISTER(                                                                            \
      ::stepop::tokenizers(), #name,                                                          \
      [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); }, \
      ::stepop::about_class<Class>(__VA_ARGS__))
