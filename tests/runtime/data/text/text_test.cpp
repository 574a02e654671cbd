#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/data/text/text_units.h"
#include "runtime/data/text/tokenizer.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace text_test {

using Ids = std::vector<int64_t>;

const std::string kTokenizers = STEPOP_SOURCE_DIR "/tests/runtime/data/text/tokenizers";

Ids ids_of(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<int64_t>();
  return {data, data + tensor.numel()};
}

std::string text_of(const Ids& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::string> all_texts(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Example example = example_of(dataset, i);
    texts.push_back(*example.texts.find("text"));
    CHECK(text_of(ids_of(*example.tensors.find("tokens"))) == texts.back());
  }
  return texts;
}

TEST_CASE("lines are those of the file, of any line end, empty ones if they are wanted") {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", "one\r\n\ntwo\n \nthree");
  const auto lines = dataset_of("{class: Text, path: " + path + ", tokenizer: bytes}");
  CHECK(all_texts(*lines) == std::vector<std::string>{"one", "", "two", " ", "three"});
  CHECK(ids_of(lines->labels("length")) == Ids{3, 0, 3, 1, 5});
  CHECK(lines->label_keys() == std::vector<std::string>{"length"});
  const auto full = dataset_of("{class: Text, path: " + path +
                               ", tokenizer: bytes, skip_empty: true, length: 4}");
  CHECK(ids_of(full->labels("length")) == Ids{3, 3, 1, 4});
  CHECK(text_of(ids_of(*example_of(*full, 3).tensors.find("tokens"))) == "thre");
}

TEST_CASE("documents are what stands between separators") {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", "a\nb<|end|>c<|end|><|end|>d\n<|end|>");
  const auto documents = dataset_of("{class: Text, path: " + path +
                                    ", tokenizer: bytes, examples: documents, separator: <|end|>}");
  CHECK(all_texts(*documents) == std::vector<std::string>{"a\nb", "c", "d\n"});
}

TEST_CASE("windows of bytes follow each other by the stride, with the byte behind as target") {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", "0123456789");
  const std::string config =
      "{class: Text, path: " + path + ", tokenizer: bytes, examples: windows";
  const auto windows = dataset_of(config + ", length: 4, stride: 3}");
  CHECK(windows->size() == 2);  // 0123|4, 3456|7; 6789 has no byte behind it
  const Example last = example_of(*windows, 1);
  CHECK(text_of(ids_of(*last.tensors.find("tokens"))) == "3456");
  CHECK(text_of(ids_of(*last.tensors.find("targets"))) == "4567");
  const Batch batch = batch_of(*windows, {1, 0});
  CHECK(text_of(ids_of(batch["targets"])) == "45671234");
  CHECK(dataset_of(config + ", length: 4}")->size() == 2);
  CHECK(dataset_of(config + ", length: 9}")->size() == 1);
  CHECK(message_of([&] { dataset_of(config + ", length: 10}"); }) ==
        "test.yaml:1: data/length: a window needs 10 tokens and the one that follows; " + path +
            " has 10");
}

TEST_CASE("windows of tokens are those of the pieces' ids, from memory and from a kept file") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    text +=
        fmt::format("Line {} isn't  the s\xc3\xa4me as {}{}", i, i * i, i % 7 == 0 ? "\n\n" : "\n");
  }
  const auto path = folder.write("a.txt", text);
  const std::string tokenizer = "{class: bpe, path: " + kTokenizers + "/llama3.tokenizer.json}";
  const std::string config =
      "{class: Text, path: " + path + ", examples: windows, length: 1000, tokenizer: " + tokenizer;
  const auto in_memory = dataset_of(config + "}");
  const auto in_file = dataset_of(config + ", cache: " + folder / "kept" + "}");
  REQUIRE(in_memory->size() > 400);
  REQUIRE(in_file->size() == in_memory->size());
  Ids all;
  const auto decoder = read_tokenizer(Config(parse_yaml("tokenizer: " + tokenizer, {"", 0})));
  for (int64_t i = 0; i < in_memory->size(); ++i) {
    const Ids ids = ids_of(*example_of(*in_memory, i).tensors.find("tokens"));
    CHECK(ids == ids_of(*example_of(*in_file, i).tensors.find("tokens")));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  const std::string decoded = decoder->decode(all);
  CHECK(decoded.size() > text.size() - 4000);
  CHECK((decoded == text.substr(0, decoded.size())));  // in parentheses: it is not printed

  // The file is taken as it is, made again when it is damaged, and when the text has changed.
  const auto kept = std::filesystem::directory_iterator(folder / "kept")->path().string();
  const auto written = std::filesystem::last_write_time(kept);
  CHECK(dataset_of(config + ", cache: " + folder / "kept" + "}")->size() == in_file->size());
  CHECK(std::filesystem::last_write_time(kept) == written);
  std::filesystem::resize_file(kept, std::filesystem::file_size(kept) - 4);
  CHECK(message_of([&] { example_of(*in_file, 0); }).find("was cut off while it was in use") !=
        std::string::npos);
  CHECK(dataset_of(config + ", cache: " + folder / "kept" + "}")->size() == in_file->size());
  folder.write("a.txt", text.substr(0, text.size() / 2));
  CHECK(dataset_of(config + ", cache: " + folder / "kept" + "}")->size() < in_file->size());
}

TEST_CASE("a document has the tokens that the tokenizer's file adds, a piece of lines has none") {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", "one|two|");
  const std::string tokenizer = "{class: bpe, path: " + kTokenizers + "/llama3.tokenizer.json";
  const std::string config = "{class: Text, path: " + path + ", length: 5, examples: ";
  const auto begin = [&](const std::string& rest) {
    return ids_of(*example_of(*dataset_of(config + rest), 0).tensors.find("tokens")).front();
  };
  CHECK(begin("documents, separator: \"|\", tokenizer: " + tokenizer + "}}") == 0);
  CHECK(begin("windows, separator: \"|\", tokenizer: " + tokenizer + "}}") == 0);
  CHECK(begin("windows, tokenizer: " + tokenizer + "}}") != 0);
  CHECK(begin("lines, tokenizer: " + tokenizer + ", special_tokens: false}}") != 0);
}

TEST_CASE("pieces end behind lines, and none is longer than a megabyte") {
  const TextPieces lines("ab\ncd\n\ne", "");
  CHECK(lines.end_of_piece(0) == 3);
  CHECK(lines.end_of_piece(3) == 7);
  CHECK(lines.end_of_piece(7) == 8);
  CHECK(lines.block_ends() == std::vector<size_t>{8});
  const std::string long_line = std::string(1'000'000, 'a') + " " + std::string(3'000'000, 'b');
  const TextPieces cut(long_line, "");
  CHECK(cut.end_of_piece(0) == 1'000'000);
  CHECK(cut.end_of_piece(1'000'000) <= 1'000'000 + (1 << 20));
  CHECK(cut.block_ends().back() == long_line.size());
  CHECK(TextPieces("a--b-", "--").end_of_piece(0) == 3);
}

TEST_CASE("what is wrong with a text is said") {
  const ScratchFolder folder;
  const auto message = [&](const std::string& bytes, const std::string& rest) {
    const auto path = folder.write("a.txt", bytes);
    const auto text = message_of([&] {
      const auto dataset = dataset_of("{class: Text, path: " + path + ", " + rest + "}");
      batch_of(*dataset, {1});
    });
    return text.starts_with(path) ? text.substr(path.size()) : text;
  };
  CHECK(message("", "tokenizer: bytes") == ": the file is empty");
  CHECK(message("\x1f\x8b\x08", "tokenizer: bytes") ==
        ": is compressed, and a text is read in place: gunzip it first");
  CHECK(message("a", "tokenizer: bytes, examples: words") ==
        "test.yaml:1: data/examples: expected lines, documents or windows, found \"words\"");
  CHECK(message("a", "tokenizer: bytes, examples: documents").find("documents need the text") !=
        std::string::npos);
  CHECK(message("a", "tokenizer: byte") ==
        "test.yaml:1: data/tokenizer: unknown tokenizer \"byte\": did you mean \"bytes\"? Known "
        "are: bytes, bpe, characters");
  const std::string gpt2 = "tokenizer: {class: bpe, path: " + kTokenizers + "/gpt2.tokenizer.json}";
  CHECK(message("a\nb\xff", gpt2) ==
        "example 1: " + folder / "a.txt" + ": the line at byte 2: the text is not UTF-8");
  CHECK(message("a\nb\xff", gpt2 + ", examples: windows, length: 1") ==
        ": the text at bytes 2 to 4: the text is not UTF-8");
}

TEST_CASE("a text that is cut off while it is used is an error, not the end of the process") {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", std::string(100'000, 'x') + "\ny");
  const auto dataset = dataset_of("{class: Text, path: " + path + ", tokenizer: bytes}");
  std::filesystem::resize_file(path, 10);
  CHECK(message_of([&] { batch_of(*dataset, {1}); }) ==
        "example 1: " + path + ": was cut off while it was in use: it had 100.0 kB and has 10 B");
}

}  // namespace text_test
}  // namespace stepop
