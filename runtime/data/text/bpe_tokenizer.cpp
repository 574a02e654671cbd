#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/json_file.h"
#include "runtime/core/system/read_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/text/added_tokens.h"
#include "runtime/data/text/bpe.h"
#include "runtime/data/text/json_part.h"
#include "runtime/data/text/text_steps.h"
#include "runtime/data/text/tokenizer.h"

namespace stepop {
namespace {

using Json = nlohmann::json;

/// Llama 3's file, with 128,000 tokens, has 9 MB; the largest known files have 35 MB.
constexpr int64_t kMostBytes = 40'000'000;
constexpr int32_t kLargestId = (1 << 24) - 1;
constexpr int kMostNested = 32;

Json parse(const std::string& path, const std::string& text) {
  const auto check = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostNested) throw Error(path + ": has lists or maps in too many others");
    return true;
  };
  return parse_json(text, path + ": the file", check);
}

std::pair<std::string, std::string> read_merge(const JsonPart& part) {
  if (part.value().is_string()) {
    const auto text = part.text();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  } else if (const auto items = part.items(); items.size() == 2) {
    return {items[0].text(), items[1].text()};
  }
  throw part.expected("two tokens, \"a b\" or [\"a\", \"b\"]");
}

BpeParts read_bpe(const JsonPart& model) {
  const auto type = model.text("type", "BPE");
  if (type != "BPE") throw model.unsupported(type, "BPE");
  if (model.has("dropout") && model.at("dropout").value() != 0) {
    throw model.error("\"dropout\" is not supported: it makes other ids each time");
  }
  BpeParts parts;
  const JsonPart vocabulary = model.at("vocab");
  if (!vocabulary.value().is_object()) throw vocabulary.expected("a map");
  for (const auto& [token, id] : vocabulary.value().items()) {
    const bool is_good = id.is_number_unsigned() && id.get<uint64_t>() <= kLargestId;
    if (!is_good) {
      throw vocabulary.error(fmt::format("the id of \"{}\" is not a whole number from 0 to {}",
                                         shortened(token, 80), kLargestId));
    }
    parts.vocabulary.emplace_back(token, id.get<int32_t>());
  }
  for (const auto& item : model.at("merges").items()) parts.merges.push_back(read_merge(item));
  if (model.has("unk_token")) parts.unknown = model.text("unk_token");
  parts.continuing_prefix = model.text("continuing_subword_prefix", "");
  parts.end_suffix = model.text("end_of_word_suffix", "");
  parts.fuse_unknown = model.flag("fuse_unk", false);
  parts.byte_fallback = model.flag("byte_fallback", false);
  parts.ignore_merges = model.flag("ignore_merges", false);
  return parts;
}

Bpe build_bpe(const JsonPart& model) {
  const BpeParts parts = read_bpe(model);
  try {
    return Bpe(parts);
  } catch (const Error& error) {
    throw model.error(error.what());
  }
}

/// The ids that stand before and after a text.
struct Frame {
  std::vector<int32_t> before;
  std::vector<int32_t> behind;
};

Frame read_template(const JsonPart& part) {
  Frame frame;
  bool has_text = false;
  for (const auto& item : part.at("single").items()) {
    if (item.has("Sequence")) {
      if (has_text) throw item.error("the text is listed twice, which is not supported");
      has_text = true;
      continue;
    }
    const auto name = item.at("SpecialToken").text("id");
    const JsonPart special = part.at("special_tokens").at(name.c_str());
    for (const auto& id : special.at("ids").items()) {
      (has_text ? frame.behind : frame.before).push_back(id.number(kLargestId));
    }
  }
  return frame;
}

int32_t id_of_pair(const JsonPart& part) {
  const auto items = part.items();
  if (items.size() != 2) throw part.expected("a token and its id");
  return items[1].number(kLargestId);
}

Frame read_post_processor(const JsonPart& part) {
  const auto type = part.text("type");
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(part);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    return {.before = {id_of_pair(part.at("cls"))}, .behind = {id_of_pair(part.at("sep"))}};
  }
  if (type == "Sequence") {
    Frame all;
    for (const auto& item : part.at("processors").items()) {
      const Frame one = read_post_processor(item);
      all.before.insert(all.before.begin(), one.before.begin(), one.before.end());
      all.behind.insert(all.behind.end(), one.behind.begin(), one.behind.end());
    }
    return all;
  }
  throw part.unsupported(
      type, "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, Sequence");
}

/// A `tokenizer.json` of the package `tokenizers` whose model is BPE.
class BpeTokenizer : public Tokenizer {
 public:
  struct Params {
    InputFile path;
    bool special_tokens = true;

    void declare(Parameters& p) {
      p.require("path", path, "the tokenizer.json");
      p.add("special_tokens", special_tokens,
            "whether lines and documents get the tokens that the file adds at their ends");
    }
  };

  explicit BpeTokenizer(const Params& params)
      : BpeTokenizer(params.path.text, params.special_tokens) {}

  int64_t vocabulary_size() const override { return static_cast<int64_t>(size_); }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    if (!is_utf8(text)) throw Error("the text is not UTF-8");
    for (const auto& part : added_.split(text)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      std::string normal(text.substr(part.first, part.end - part.first));
      if (normalize_) normal = normalize_(std::move(normal));
      for (const auto& inner : added_normal_.split(normal)) {
        if (inner.id) {
          ids.push_back(*inner.id);
        } else {
          encode_words({{normal.substr(inner.first, inner.end - inner.first),
                         part.first == 0 && inner.first == 0}},
                       ids);
        }
      }
    }
  }

  void encode_whole(std::string_view text, std::vector<int32_t>& ids) const override {
    if (adds_special_) ids.insert(ids.end(), frame_.before.begin(), frame_.before.end());
    encode(text, ids);
    if (adds_special_) ids.insert(ids.end(), frame_.behind.begin(), frame_.behind.end());
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<std::string> texts;
    for (const int64_t id : ids) {
      const auto found = tokens_.find(id);
      if (found == tokens_.end()) {
        throw Error(fmt::format("{}: no token has the id {}", path_, id));
      }
      texts.push_back(found->second);
    }
    if (decode_) texts = decode_(std::move(texts));
    std::string text;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!decode_ && i > 0) text += ' ';
      text += texts[i];
    }
    return text;
  }

  std::optional<int64_t> id_of(std::string_view token) const override {
    const auto added = added_ids_.find(std::string(token));
    if (added != added_ids_.end()) return added->second;
    return bpe_.id_of(token);
  }

  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  BpeTokenizer(const std::string& path, bool adds_special)
      : BpeTokenizer(path, adds_special, read_file(path, kMostBytes)) {}

  BpeTokenizer(const std::string& path, bool adds_special, const std::string& text)
      : BpeTokenizer(path, adds_special, seed_of(text), parse(path, text)) {}

  BpeTokenizer(const std::string& path, bool adds_special, uint64_t hash, const Json& json)
      : path_(path),
        adds_special_(adds_special),
        fingerprint_(mix_seed({hash, adds_special ? 1U : 0U})),
        bpe_(build_bpe(JsonPart(path, json).at("model"))) {
    const JsonPart root(path, json);
    for (const char* key : {"truncation", "padding"}) {
      if (!root.has(key)) continue;
      throw root.error(
          fmt::format("\"{}\" is not supported: set it to null, and use \"length\" of "
                      "Text and the dataset Padded",
                      key));
    }
    for (const auto& [token, id] : root.at("model").at("vocab").value().items()) {
      tokens_[id.get<int64_t>()] = token;
    }
    if (root.has("normalizer")) normalize_ = read_normalizer(root.at("normalizer"));
    if (root.has("pre_tokenizer")) pre_tokenize_ = read_pre_tokenizer(root.at("pre_tokenizer"));
    if (root.has("post_processor")) frame_ = read_post_processor(root.at("post_processor"));
    if (root.has("decoder")) decode_ = read_decoder(root.at("decoder"));
    if (root.has("added_tokens")) read_added_tokens(root.at("added_tokens"));
    for (const auto& [id, token] : tokens_) size_ = std::max(size_, id + 1);
    if (size_ == 0) throw root.error("the vocabulary is empty");
    for (const auto* ids : {&frame_.before, &frame_.behind}) {
      for (const int32_t id : *ids) {
        if (tokens_.contains(id)) continue;
        throw root.error(fmt::format("post_processor: no token has the id {}", id));
      }
    }
  }

  void read_added_tokens(const JsonPart& part) {
    for (const auto& item : part.items()) {
      AddedToken token;
      token.content = item.text("content");
      if (token.content.empty()) continue;
      token.id = item.at("id").number(kLargestId);
      if (const auto known = bpe_.id_of(token.content)) token.id = *known;
      token.is_single_word = item.flag("single_word", false);
      token.takes_left = item.flag("lstrip", false);
      token.takes_right = item.flag("rstrip", false);
      tokens_[token.id] = token.content;
      added_ids_[token.content] = token.id;
      const bool is_normal = item.flag("normalized", !item.flag("special", false));
      if (is_normal && normalize_) token.content = normalize_(token.content);
      if (token.content.empty()) continue;
      (is_normal ? added_normal_ : added_).add(token);
    }
  }

  void encode_words(std::vector<Piece> pieces, std::vector<int32_t>& ids) const {
    if (pre_tokenize_) pieces = pre_tokenize_(std::move(pieces));
    for (const auto& piece : pieces) bpe_.encode(piece.text, ids);
  }

  std::string path_;
  bool adds_special_;
  uint64_t fingerprint_;
  Bpe bpe_;
  std::unordered_map<int64_t, std::string> tokens_;
  std::unordered_map<std::string, int64_t> added_ids_;
  AddedTokens added_;         ///< Tokens to find in the original text.
  AddedTokens added_normal_;  ///< Tokens to find in the normalized text.
  Normalizer normalize_;
  PreTokenizer pre_tokenize_;
  Decoder decode_;
  Frame frame_;
  int64_t size_ = 0;
};

STEPOP_REGISTER_TOKENIZER(
    bpe, BpeTokenizer,
    {"Byte pair encoding, as a tokenizer.json of the package `tokenizers` describes it."});

}  // namespace
}  // namespace stepop
