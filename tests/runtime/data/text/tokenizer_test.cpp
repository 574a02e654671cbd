#include "runtime/data/text/tokenizer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/base/unicode.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/text/split_pattern.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace tokenizer_test {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

const std::string kStored = STEPOP_SOURCE_DIR "/tests/runtime/data/text/tokenizers";

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& yaml) {
  return read_tokenizer(Config(parse_yaml("tokenizer: " + yaml, {"test.yaml", 0})));
}

Ids ids_of(const Tokenizer& tokenizer, const std::string& text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::string text_of(const Tokenizer& tokenizer, const Ids& ids) {
  return tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end()));
}

TEST_CASE("ids and texts are those of the package tokenizers") {
  const char* given = std::getenv("STEPOP_TOKENIZERS");  // what make_reference.py wrote there
  const std::string folder = given != nullptr ? given : kStored;
  const Json expected = Json::parse(read_bytes(folder + "/expected.json"));
  const auto lines = expected.at("lines").get<std::vector<std::string>>();
  int files = 0;
  for (const auto& [name, values] : expected.items()) {
    if (name == "lines") continue;
    ++files;
    CAPTURE(name);
    const auto tokenizer = tokenizer_of("{class: bpe, path: " + folder + "/" + name + "}");
    int different = 0;
    for (size_t i = 0; i < lines.size() && different < 5; ++i) {
      CAPTURE(i);
      CAPTURE(lines[i]);
      Ids whole;
      tokenizer->encode_whole(lines[i], whole);
      const auto wanted = values.at("ids")[i].get<Ids>();
      const bool is_right = whole == wanted &&
                            ids_of(*tokenizer, lines[i]) == values.at("plain")[i].get<Ids>() &&
                            text_of(*tokenizer, wanted) == values.at("texts")[i].get<std::string>();
      CHECK(whole == wanted);
      CHECK(text_of(*tokenizer, wanted) == values.at("texts")[i].get<std::string>());
      CHECK(is_right);
      different += is_right ? 0 : 1;
    }
  }
  CHECK(files == 7);
}

TEST_CASE("bytes and characters become ids and texts again") {
  const auto bytes = tokenizer_of("bytes");
  CHECK(bytes->vocabulary_size() == 256);
  CHECK(ids_of(*bytes, "a\xc3\xa9") == Ids{97, 195, 169});
  CHECK(text_of(*bytes, {97, 195, 169, 195}) == "a\xc3\xa9\xef\xbf\xbd");

  const ScratchFolder folder;
  folder.write("a.txt", "hello\n\xc3\xa9?");
  const auto characters = tokenizer_of("{class: characters, of: " + folder / "a.txt" + "}");
  CHECK(characters->vocabulary_size() == 7);  // "\n?ehlo\u00e9" has 7 with no repeats
  CHECK(text_of(*characters, ids_of(*characters, "hell\xc3\xa9")) == "hell\xc3\xa9");
  CHECK(characters->id_of("\n") == 0);
  CHECK(message_of([&] { ids_of(*characters, "hex"); }) ==
        "the character \"x\" is not among the 7 of the tokenizer's text; unknown: \"?\" would read "
        "it as that");
  CHECK(message_of([&] { ids_of(*characters, "\xff"); }) == "the text is not UTF-8");
  const auto lenient =
      tokenizer_of("{class: characters, of: " + folder / "a.txt" + ", unknown: \"?\"}");
  CHECK(text_of(*lenient, ids_of(*lenient, "hex")) == "he?");
}

TEST_CASE("what a tokenizer.json asks for and is not supported is named") {
  const ScratchFolder folder;
  const auto message = [&](const std::string& json) {
    const auto path = folder.write("t.json", json);
    const auto text = message_of([&] { tokenizer_of("{class: bpe, path: " + path + "}"); });
    return text.starts_with(path) ? text.substr(path.size()) : text;
  };
  const auto with = [&](const std::string& more) {
    return message(R"({"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}, )" + more +
                   "}");
  };
  CHECK(message("{\"model\": {\"type\": \"Unigram\"}}") ==
        ": model: \"Unigram\" is not supported; supported: BPE");
  CHECK(message("{}") == ": \"model\" is missing");
  CHECK(message("[1") == ": the file is not valid JSON (at its byte 3)");
  CHECK(message("[1e400]") == ": the file has a number that is too large");
  CHECK(message(R"({"model": {"vocab": {"a": 0}, "merges": ["a b"]}})") ==
        ": model: merge 0 needs the token \"b\", which is not in the vocabulary");
  CHECK(message(R"({"model": {"vocab": {"a": -1}, "merges": []}})") ==
        ": model/vocab: the id of \"a\" is not a whole number from 0 to 16777215");
  CHECK(message(R"({"model": {"vocab": {"a": 0}, "merges": ["a"]}})") ==
        ": model/merges/0: expected two tokens, \"a b\" or [\"a\", \"b\"], found \"a\"");
  CHECK(with(R"("normalizer": {"type": "NFKC"})") ==
        ": normalizer: \"NFKC\" is not supported; supported: NFC, NFD, Lowercase, Replace, Strip, "
        "Prepend, Sequence");
  CHECK(with(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "X"}]})")
            .starts_with(": pre_tokenizer/pretokenizers/0: \"X\" is not supported; supported: "));
  CHECK(with(R"("truncation": {"max_length": 3})")
            .starts_with(": \"truncation\" is not supported: set it to null"));
  CHECK(with(R"("added_tokens": [{"content": "x", "id": 4294967295}])") ==
        ": added_tokens/0/id: expected a whole number from 0 to 16777215, found 4294967295");
  CHECK(with(R"("decoder": 3)") == ": decoder: expected a map, found 3");
}

TEST_CASE("a pattern that is not supported is refused, with the place") {
  const auto message = [](const std::string& pattern) {
    return message_of([&] { SplitPattern{pattern}; });
  };
  CHECK(message("a(?m:b)") ==
        "the pattern a(?m:b) has \"(?m:\", which is not supported (at its byte 1)");
  for (const char* unsupported : {"(?i)a", "(*UTF)", "[a&&b]", "[[a]]", "a{2}+", "a{2,3}+", "a{2}?",
                                  "\\h", "\\G", "(a)\\1", "[\\B]", "\\K"}) {
    CAPTURE(unsupported);
    CHECK(message(unsupported).find("\", which is not supported (at its byte ") !=
          std::string::npos);
  }
  const auto is_wrong = [&](const std::string& pattern, const std::string& problem) {
    CHECK(message(pattern) == "the pattern " + pattern + " is wrong: " + problem);
  };
  is_wrong("(a", "missing closing parenthesis (at its byte 2)");
  is_wrong("\\s\\wa)", "unmatched closing parenthesis (at its byte 5)");
  is_wrong("*", "quantifier does not follow a repeatable item (at its byte 0)");
  is_wrong("[", "missing terminating ] for character class (at its byte 1)");
  is_wrong("[b-a]", "range out of order in character class (at its byte 3)");
  is_wrong("\\p{Nothing}", "unknown property after \\P or \\p (at its byte 11)");
  is_wrong("((a{999}){999}){999}", "regular expression is too large (at its byte 20)");
  is_wrong("\\x{d800}", "disallowed Unicode code point (>= 0xd800 && <= 0xdfff) (at its byte 0)");
  CHECK(message("\\x4") ==
        "the pattern \\x4 has an escape that is not a character (at its byte 0)");
  CHECK(message("\\pL") == "the pattern \\pL has \\p without {...} (at its byte 0)");
  CHECK(message("\xff") == "the pattern \xff is no UTF-8 (at its byte 0)");
  CHECK(message(std::string(10'001, 'a')).ends_with("is too long (at its byte 0)"));
}

TEST_CASE("a pattern finds the first match, by the first alternative that fits") {
  const auto found = [](const std::string& pattern, const std::string& text) {
    int64_t budget = SplitPattern::budget_for(text);
    const auto place = SplitPattern(pattern).find(text, 0, budget);
    return place ? text.substr(place->first, place->second - place->first) : "nothing";
  };
  CHECK(found("a|ab", "xab") == "a");
  CHECK(found("(?:ab|a)c", "abac") == "ac");
  CHECK(found("[^ab]+", "abcda") == "cd");
  CHECK(found("\\s+(?!\\S)", "a   b") == "  ");
  CHECK(found("a{2,3}", "aaaa") == "aaa");
  CHECK(found("(?:ab){2}", "ababab") == "abab");
  CHECK(found("a+?b?", "aab") == "a");
  CHECK(found("a++ab", "aaab") == "nothing");
  CHECK(found("(?:a|ab)++c", "abc") == "nothing");
  CHECK(found("(?=b)..", "abc") == "bc");
  CHECK(found("(?i:'S)", "it's") == "'s");
  CHECK(found("[\\x41-\\u0043]+", "xABCD") == "ABC");
  CHECK(found("\\p{^L}+", "a12b") == "12");
  CHECK(found("[\xe4\xb8\x80-\xe9\xbe\xa5]+", "a\xe4\xbd\xa0\xe5\xa5\xbd") ==
        "\xe4\xbd\xa0\xe5\xa5\xbd");
}

TEST_CASE("a pattern means what Oniguruma reads in it") {
  const auto found = [](const std::string& pattern, const std::string& text) {
    int64_t budget = SplitPattern::budget_for(text);
    const auto place = SplitPattern(pattern).find(text, 0, budget);
    return place ? text.substr(place->first, place->second - place->first) : "nothing";
  };
  const std::string mark = "e\xcc\x81";            // a letter and an accent of its own
  const std::string separator = "\xe1\xa0\x8e";    // U+180E, no white space since Unicode 6.3
  const std::string ideographic = "\xe3\x80\x80";  // U+3000, a space
  CHECK(found("\\w+", mark + "-") == mark);
  CHECK(found("[\\w]+", "-" + mark) == mark);
  CHECK(found("\\W+", mark + "-") == "-");
  CHECK(found("[\\W\\d]+", mark + "-1a") == "-1");
  CHECK(found("\\bx\\b", mark + "x x") == "x");
  CHECK(found("\\w\\B.", "a-ab") == "ab");
  CHECK(found("\\s", separator) == "nothing");
  CHECK(found("\\S", separator) == separator);
  CHECK(found("[^\\s]", separator) == separator);
  CHECK(found("[\\S]+", ideographic + "a ") == "a");
  CHECK(found("\\s+", "a" + ideographic + "\x0b\xc2\x85") == ideographic + "\x0b\xc2\x85");
  CHECK(found("[\\s-x]+", "a- xy") == "- x");
  CHECK(found("\\v", "\n\x0b") == "\x0b");
  CHECK(found("a{,2}b", "aaab") == "aab");
  CHECK(found("a{,}|b{x}", "b{x}") == "b{x}");
  CHECK(found("^b$", "a\nb\nc") == "b");
  CHECK(found(".+", "\ra\nb") == "\ra");
  CHECK(found("(?i:k)", "\xe2\x84\xaa") == "\xe2\x84\xaa");  // the Kelvin sign
  CHECK(found("\\p{Letter}\\p{^Number}\\p{Han}", "1ab\xe4\xbd\xa0") == "ab\xe4\xbd\xa0");
  CHECK(found("(?<=a)b(?<!bb)", "bab") == "b");
  CHECK(found("\\d{1,3}(?=(?:\\d{3})*\\b)", "1234567") == "1");
  // Longer than what is searched between two looks at the clock.
  CHECK(found("b(?=a*c)", std::string(500, 'a') + "\xc3\xa9" + std::string(500, 'b') + "aac") ==
        "b");
  CHECK(found("(a?)*b", "aab") == "aab");
}

TEST_CASE("a pattern whose ways grow with a power of the text's length ends with an error") {
  const auto message = [](const std::string& pattern, const std::string& text) {
    return message_of([&] {
      int64_t budget = SplitPattern::budget_for(text);
      SplitPattern(pattern).find(text, 0, budget);
    });
  };
  CHECK(message("(?:a|aa)+\\d", std::string(100, 'a')) ==
        "the pattern (?:a|aa)+\\d: the regular expression takes too many steps for a text of 100 "
        "bytes");
  const std::string words = [] {
    std::string text;
    for (int i = 0; i < 3'000; ++i) text += std::string(25, 'a') + "b ";
    return text;
  }();
  CHECK(message("(?:a|aa)+ |\\d", words).ends_with("too many steps for a text of 81000 bytes"));
  CHECK(message("(?:a|b)+\\d", std::string(100'000, 'a'))
            .ends_with("too many steps for a text of 100000 bytes"));
  CHECK(message("(?=[^\\n]*+\\n)a", std::string(200'000, 'a'))
            .ends_with("too many steps for a text of 200000 bytes"));
  CHECK(message("(?:a|b)+", std::string(100'000, 'a')) == "no error");  // needs much memory
  CHECK(message("a\\p{L}*\\d", std::string(30'000, 'a')) == "no error");
}

}  // namespace tokenizer_test
}  // namespace stepop
