#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/text/tokenizer.h"
#include "tests/fuzz.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace tokenizer_fuzz_test {

using Json = nlohmann::json;

const std::string kStored = STEPOP_SOURCE_DIR "/tests/runtime/data/text/tokenizers";

/// A text to ids and back.
void use(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  tokenizer.encode_whole("It's  a t\xc3\xa9st\n <|endoftext|> 12345", ids);
  tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end()));
}

TEST_CASE("mutated tokenizer files are read or refused") {
  const ScratchFolder folder;
  const std::vector<std::string> words = {
      "\"type\":", "\"Sequence\"", "\"Split\"", "\"ByteLevel\"", "\"Regex\":", "null",
      "[]",        "{}",           "\"NFC\"",   "\"Strip\"",     "\\\\p{L}",   "(?!",
      "+)*",       "-1",           "1e9",       "\"\""};
  FuzzWatch watch("tokenizer", fuzz_seed());
  int read = 0;
  for (const char* name : {"gpt4o", "clip"}) {
    Json json = Json::parse(read_bytes(kStored + "/" + name + ".tokenizer.json"));
    // Fewer merges, so that most changes are made elsewhere.
    auto& merges = json["model"]["merges"];
    while (merges.size() > 20) merges.erase(merges.size() - 1);
    const std::string bytes = json.dump();
    ByteMutator mutator(fuzz_seed(), words, {"\"type\":", "\"pattern\"", "\"added_tokens\""});
    for (uint64_t i = fuzz_first(); i < fuzz_count(400); ++i) {
      const std::string path = folder.write("t.json", mutator.mutate(bytes));
      watch.run(i, [&] {
        try {
          const auto config = parse_yaml("tokenizer: {class: bpe, path: " + path + "}", {"", 0});
          use(*read_tokenizer(Config(config)));
          ++read;
        } catch (const Error&) {
        }
      });
    }
  }
  CHECK(read > 0);
}

}  // namespace tokenizer_fuzz_test
}  // namespace stepop
