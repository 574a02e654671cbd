#include "runtime/core/formats/safetensors.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

#include "runtime/core/base/error.h"
#include "tests/runtime/train/checkpoint/examples.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace safetensors_test {

using Metadata = std::map<std::string, std::string>;

const Metadata kMetadata = {{"format", "pt"}, {"note", "a \"quoted\"\nline, \u00fcber"}};

TEST_CASE("Python's safetensors reads what we write, of every type") {
  const ScratchFolder folder;
  save_safetensors(folder / "ours", examples(), kMetadata);
  CHECK(run_peer("check", folder / "ours") == 0);
  CHECK(folder.names() == std::vector<std::string>{"ours"});
}

TEST_CASE("we read what Python's safetensors writes, of every type") {
  const ScratchFolder folder;
  REQUIRE(run_peer("write", folder / "theirs") == 0);
  const SafetensorsFile file = load_safetensors(folder / "theirs");
  check_equal(file.tensors, examples());
  CHECK(file.metadata == kMetadata);
}

TEST_CASE("a file is bit-identical for equal tensors, and aligned") {
  const ScratchFolder folder;
  save_safetensors(folder / "a", examples(), kMetadata);
  const SafetensorsFile file = load_safetensors(folder / "a");
  save_safetensors(folder / "b", file.tensors, file.metadata);
  CHECK(read_bytes(folder / "a") == read_bytes(folder / "b"));
  uint64_t header = 0;
  std::memcpy(&header, read_bytes(folder / "a").data(), 8);
  CHECK(header % 8 == 0);
}

TEST_CASE("no tensors and no metadata make a valid file") {
  const ScratchFolder folder;
  save_safetensors(folder / "a", {});
  CHECK(read_bytes(folder / "a") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(load_safetensors(folder / "a").tensors.empty());
}

TEST_CASE("what the format cannot hold is refused and the old file stays") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  write_bytes(path, "old");
  const auto refused = [&](const State& tensors, const Metadata& metadata, const char* reason) {
    const std::string message = "cannot save " + path + ": " + reason;
    CHECK_THROWS_WITH_AS(save_safetensors(path, tensors, metadata), message.c_str(), Error);
  };
  refused({{"x", at::Tensor()}}, {}, "tensor \"x\" is undefined");
  refused({{"x", at::ones({2}, at::kComplexFloat)}}, {},
          "tensor \"x\" is of type ComplexFloat, which the format cannot hold");
  refused({{"__metadata__", at::ones({2})}}, {},
          "the name \"__metadata__\" is reserved by the format");
  refused({{"\xff", at::ones({2})}}, {}, "the names of its tensors and its metadata must be UTF-8");
  refused({}, {{"a", "\xc3"}}, "the names of its tensors and its metadata must be UTF-8");
  CHECK(folder.names() == std::vector<std::string>{"a"});
  CHECK(read_bytes(path) == "old");
}

/// A file with `header` and `data` bytes of zeros.
std::string file_of(const std::string& header, size_t data) {
  const uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + std::string(data, '\0');
}

TEST_CASE("every file that breaks the format is refused with its path and what is wrong") {
  const ScratchFolder folder;
  const std::string path = folder / "bad";
  const auto refused = [&](const std::string& bytes, const std::string& reason) {
    write_bytes(path, bytes);
    CHECK_THROWS_WITH_AS(load_safetensors(path), (path + ": " + reason).c_str(), Error);
  };
  const auto f32 = [](const char* name, const char* shape, const char* offsets) {
    return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":{}}})", name, shape,
                       offsets);
  };
  const auto refused_header = [&](const std::string& header, size_t data,
                                  const std::string& reason) {
    refused(file_of("{" + header + "}", data), reason);
  };

  refused("", "it has 0 bytes, too few for a safetensors file");
  refused("1234567", "it has 7 bytes, too few for a safetensors file");
  refused("PK\x03\x04 a zip file",
          "not a safetensors file but a zip archive, such as torch.save writes; "
          "safetensors.torch.save_file(torch.load(...), path) makes one of its tensors");
  refused("a text file",
          "not a safetensors file: its first 8 bytes say that the header "
          "has 7359009851570397281 bytes, the format allows 100000000");
  refused(file_of("{}", 0).substr(0, 9),
          "its header has 2 bytes, only 1 are there: the file is cut short");
  refused(file_of("{\"a\":", 0), "the header is not valid JSON (at its byte 6)");
  refused(file_of("{} x", 0), "the header is not valid JSON (at its byte 4)");
  refused(file_of("\xff", 0), "the header is not valid JSON (at its byte 1)");
  refused(file_of("[]", 0), "the header is not a map");
  refused(file_of(std::string(100000, '['), 0), "the header has lists or maps in too many others");
  refused(file_of(R"({"a":1e999})", 0), "the header has a number that is too large");

  refused_header(f32("a", "[1]", "[0,4]") + "," + f32("a", "[1]", "[4,8]"), 8,
                 "the header names \"a\" twice");
  refused_header(R"("a":{"dtype":"F32","dtype":"F64","shape":[],"data_offsets":[0,8]})", 8,
                 "the header names \"dtype\" twice");
  refused_header(R"("a":1)", 0, "tensor \"a\" is not described by a map");
  refused_header(R"("a":{"shape":[],"data_offsets":[0,4]})", 4, "tensor \"a\" has no \"dtype\"");
  refused_header(R"("a":{"dtype":"F4","shape":[],"data_offsets":[0,8]})", 8,
                 "tensor \"a\" has the unknown dtype \"F4\"; known are: F32, F64, F16, BF16, I8, "
                 "I16, I32, I64, U8, BOOL");
  for (const char* type : {"U16", "F8_E4M3", "C64"}) {
    const bool is_long = std::string(type) == "C64";
    refused_header(
        fmt::format(R"("a":{{"dtype":"{}","shape":[{}],"data_offsets":[0,8]}})", type,
                    is_long          ? 1
                    : type[0] == 'U' ? 4
                                     : 8),
        8,
        fmt::format("tensor \"a\" has the dtype \"{}\", which cannot be read; those that "
                    "can be are: F32, F64, F16, BF16, I8, I16, I32, I64, U8, BOOL",
                    type));
  }
  refused_header(R"("a":{"dtype":"U16","shape":[3],"data_offsets":[0,8]})", 8,
                 "tensor \"a\" of U16 [3] needs 6 bytes, its data_offsets give it 8");
  refused_header(f32("a", "[-1]", "[0,4]"), 4,
                 "tensor \"a\" has no \"shape\" that is a list of whole numbers of 0 and more");
  refused_header(f32("a", "[1]", "[0.0,4]"), 4,
                 "tensor \"a\" has no \"data_offsets\" that is a list of whole numbers of 0 and "
                 "more");
  refused_header(f32("a", "[1]", "[4,0]"), 4,
                 "tensor \"a\" has the data_offsets [4, 0], expected its begin and its end");
  refused_header(f32("a", "[1]", "[0,4,8]"), 8,
                 "tensor \"a\" has the data_offsets [0, 4, 8], expected its begin and its end");
  refused_header(f32("a", "[3,2]", "[0,20]"), 20,
                 "tensor \"a\" of F32 [3, 2] needs 24 bytes, its data_offsets give it 20");
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  refused_header(f32("a", (ones + "]").c_str(), "[0,4]"), 4,
                 "tensor \"a\" has 65 dimensions, LibTorch allows 64");
  refused_header(f32("a", "[4611686018427387904,4]", "[0,0]"), 0,
                 "tensor \"a\" has the shape [4611686018427387904, 4], which no memory can hold");
  refused_header(
      f32("a", "[0,4611686018427387904,4]", "[0,0]"), 0,
      "tensor \"a\" has the shape [0, 4611686018427387904, 4], which no memory can hold");
  refused_header(f32("a", "[2]", "[0,8]") + "," + f32("b", "[2]", "[4,12]"), 12,
                 "tensors \"a\" and \"b\" overlap");
  refused_header(f32("a", "[1]", "[0,4]") + "," + f32("b", "[1]", "[8,12]"), 12,
                 "4 bytes before tensor \"b\" belong to no tensor");
  refused_header(f32("a", "[2]", "[0,8]"), 7,
                 "its tensors take 8 bytes, only 7 are there: the file is cut short");
  refused_header(f32("a", "[2]", "[0,8]"), 9, "1 bytes after the last tensor belong to no tensor");
  refused_header(
      f32("a", "[281474976710656]", "[0,1125899906842624]"), 8,
      "its tensors take 1125899906842624 bytes, only 8 are there: the file is cut short");
  refused_header(R"("__metadata__":{"a":1})", 0, "the metadata \"a\" is not a text");
  refused_header(R"("__metadata__":[])", 0, "\"__metadata__\" is not a map of texts");
}

TEST_CASE("a file that cannot be opened is named with the reason") {
  const ScratchFolder folder;
  CHECK_THROWS_WITH_AS(load_safetensors(folder / "none"),
                       ((folder / "none") + ": cannot open: No such file or directory").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(load_safetensors(folder / "."),
                       ((folder / ".") + ": it is a folder, not a file").c_str(), Error);
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(load_safetensors(pipe),
                       (pipe + ": it is a pipe or a device, not a regular file").c_str(), Error);
}

TEST_CASE("a file cut at any byte is refused, whatever the byte") {
  const ScratchFolder folder;
  save_safetensors(folder / "whole", {{"a", at::ones({3})}, {"b", at::ones({2}, at::kByte)}});
  const std::string bytes = read_bytes(folder / "whole");
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_bytes(folder / "cut", bytes.substr(0, size));
    CHECK_THROWS_AS(load_safetensors(folder / "cut"), Error);
  }
}

TEST_CASE("a file with any byte of its header changed is read or refused, never worse") {
  const ScratchFolder folder;
  save_safetensors(folder / "whole", {{"a", at::ones({3})}, {"b", at::ones({0, 2})}}, {{"k", "v"}});
  const std::string bytes = read_bytes(folder / "whole");
  int refused = 0;
  for (size_t i = 0; i + 12 < bytes.size(); ++i) {
    for (const char byte : {'\0', '\xff', '9', '{', '"', ',', '-'}) {
      std::string changed = bytes;
      changed[i] = byte;
      write_bytes(folder / "changed", changed);
      try {
        load_safetensors(folder / "changed");
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 500);
}

#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory for a while
/// A line of /proc/self/status in KiB: VmRSS, or its peak VmHWM.
int64_t memory_kib(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  }
  return -1;
}

TEST_CASE("saving copies one tensor at a time") {
  const ScratchFolder folder;
  State tensors;
  for (int i = 0; i < 16; ++i) tensors[std::to_string(i)] = at::ones({1 << 10, 1 << 10}).t();
  save_safetensors(folder / "first", {{"a", tensors["0"]}});  // starts PyTorch's threads
  std::ofstream("/proc/self/clear_refs") << 5;                // the peak starts anew
  const int64_t before = memory_kib("VmRSS");
  REQUIRE(before > 64 * 1024);
  save_safetensors(folder / "all", tensors);
  CHECK(memory_kib("VmHWM") - before < 32 * 1024);  // the tensors take 64 MiB, one of them 4
}
#endif

}  // namespace safetensors_test
}  // namespace stepop
