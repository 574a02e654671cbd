// Whatever the bytes of a data file are, it is read or refused with an Error, within time and
// memory.
#include <doctest/doctest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/formats/idx_file.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/formats/weights_file.h"
#include "tests/fuzz.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace formats_fuzz_test {

std::string packed(const std::string& bytes, int level) {
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string result(deflateBound(&stream, bytes.size()) + 100, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  result.resize(result.size() - stream.avail_out);
  deflateEnd(&stream);
  return result;
}

/// Reads mutated files of one kind; as many as `least` percent are read.
template <class Read>
void fuzz(const char* kind, const std::vector<std::string>& seeds, std::vector<std::string> words,
          uint64_t least, const Read& read) {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(1000);
  CAPTURE(seed);
  const ScratchFolder folder;
  const std::string path = folder.path("file");
  FuzzWatch watch(kind, seed);
  uint64_t are_read = 0;
  for (uint64_t i = fuzz_first(); i < fuzz_first() + count; ++i) {
    CAPTURE(i);
    ByteMutator mutator(seed * 1'000'003 + i, words);
    std::string bytes = mutator.mutate(seeds[mutator.below(seeds.size())]);
    // What is packed is broken before, or afterwards.
    if (mutator.below(3) == 0) bytes = packed(bytes, static_cast<int>(mutator.below(10)));
    if (mutator.below(6) == 0) bytes = mutator.mutate(packed(bytes, 6));
    write_bytes(path, bytes);
    watch.run(i, [&] {
      try {
        read(path);
        ++are_read;
      } catch (const Error& error) {
        REQUIRE(std::string(error.what()).find(path) != std::string::npos);
      }
    });
  }
  CHECK(are_read >= count * least / 100);  // or the mutations do not get far
}

TEST_CASE("mutated IDX files are read or refused") {
  const std::string images =
      std::string("\0\0\x08\x03\0\0\0\x04\0\0\0\x03\0\0\0\x02", 16) + std::string(24, 'x');
  const std::string labels = std::string("\0\0\x08\x01\0\0\0\x04", 8) + "abcd";
  const std::string floats =
      std::string("\0\0\x0d\x02\0\0\0\x02\0\0\0\x02", 12) + std::string(16, '?');
  fuzz("IDX", {images, labels, floats},
       {std::string("\0\0\x08", 3), std::string("\xff\xff\xff\xff", 4)}, 1,
       [](const std::string& path) { read_idx(path); });
}

TEST_CASE("mutated gzip files are read or refused") {
  const std::string text(5000, 'x');
  fuzz("gzip", {packed("hello, stepop", 6), packed(text, 9), packed("a", 0) + packed("b", 6)},
       {std::string("\x1f\x8b\x08", 3), std::string(20, '\0')}, 1,
       [](const std::string& path) { read_plain_or_gzip(path); });
}

TEST_CASE("mutated CSV files are read or refused") {
  fuzz("CSV",
       {"a,b,c\n1,2.5,x\n3,,\"y\"\"z\"\n",
        "\xef\xbb\xbf"
        "a;b\r\n1;2\r\n",
        "name\n\"two\nlines\"\n"},
       {",", "\"", "\n", "\r\n", "\"\"", ",,,,", "\xff", std::string(1, '\0')}, 5,
       [](const std::string& path) { read_csv(path); });
}

TEST_CASE("mutated safetensors files are read or refused") {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}})";
  std::string whole(8, '\0');
  whole[0] = static_cast<char>(header.size());
  whole += header + std::string(8, 'x');
  fuzz("safetensors", {whole},
       {"[", "{", "\"", "18446744073709551615", "-1", "[0,8]", "F64", "null"}, 1,
       [](const std::string& path) { load_safetensors(path); });
}

TEST_CASE("mutated files of torch.save are read or refused") {
  const ScratchFolder folder;
  run_python(
      "import sys, torch\n"
      "a = {'a': torch.ones(2, 2), 'b': {'c': torch.arange(3), 'd': (1, 2.5, 'x')}}\n"
      "torch.save(a, sys.argv[1])\n"
      "torch.save(a, sys.argv[2], _use_new_zipfile_serialization=False)\n",
      {folder.path("new"), folder.path("old")});
  const std::string old = read_bytes(folder.path("old"));
  fuzz("torch.save", {old, old, read_bytes(folder.path("new"))},
       {"Q", "R", "s", "u.", "(", "t", "}", "]", std::string("K\x40", 2), "\x8a\x08", "h\x01",
        std::string("J\xff\xff\xff\x7f", 5), std::string(8, '\xff')},
       1, [](const std::string& path) { load_weights(path); });
}

}  // namespace formats_fuzz_test
}  // namespace stepop
