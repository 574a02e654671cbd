#include "eval_out/write/chunk_compressor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "runtime/core/base/random.h"
#include "tests/huge_stacks.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace chunk_compressor_test {

std::vector<unsigned char> noise(size_t size, uint64_t seed) {
  Random random(seed);
  std::vector<unsigned char> bytes(size);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random.below(256));
  return bytes;
}

/// Bytes 0 1 2 3 4 ..., so that the order in which they are stored can be seen.
std::vector<unsigned char> counting(size_t size) {
  std::vector<unsigned char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i % 60);
  return bytes;
}

TEST_CASE("a chunk is shuffled by the bytes of its elements and is one zlib stream") {
  const ScratchFolder folder;
  for (const size_t element : {1U, 2U, 4U, 8U, 16U}) {
    CAPTURE(element);
    const CompressedChunk chunk = compress_chunk(counting(9600), element);
    CHECK(chunk.skipped_filters == 0);
    CHECK(chunk.bytes.size() < 4800);
    const std::string path =
        folder.write("chunk", std::string(chunk.bytes.begin(), chunk.bytes.end()));
    CHECK(run_python(R"(
import sys, zlib, numpy as np
found = np.frombuffer(zlib.decompress(open(sys.argv[1], "rb").read()), np.uint8)
rows = (np.arange(9600) % 60).reshape(-1, int(sys.argv[2]))
print((found.reshape(int(sys.argv[2]), -1) == rows.T).all())
)",
                     {path, std::to_string(element)}) == "True\n");
  }
}

TEST_CASE("what deflating makes no smaller is stored as it is") {
  const std::vector<unsigned char> raw = noise(10000, 1);
  const CompressedChunk chunk = compress_chunk(raw, 4);
  CHECK(chunk.skipped_filters == 3);
  CHECK((chunk.bytes == raw));
}

TEST_CASE("several threads make of each chunk what one makes") {
  ChunkCompressor compressor(3);
  std::vector<std::future<CompressedChunk>> chunks;
  const auto raw_of = [](int i) {
    std::vector<unsigned char> raw = counting(static_cast<size_t>(4000 + 40 * i));
    std::rotate(raw.begin(), raw.begin() + i, raw.end());
    return raw;
  };
  for (int i = 0; i < 50; ++i) chunks.push_back(compressor.compress(raw_of(i), 4));
  for (int i = 0; i < 50; ++i) {
    CAPTURE(i);
    CHECK((chunks[static_cast<size_t>(i)].get().bytes == compress_chunk(raw_of(i), 4).bytes));
  }
}

TEST_CASE("a compressor whose threads cannot start says so") {
  const HugeStacks no_threads;
  CHECK(message_of([] {
          ChunkCompressor compressor(2);
        }).starts_with("cannot start the thread that compresses outputs: "));
}

TEST_CASE("a compressor can be left with work to do") {
  ChunkCompressor compressor(2);
  for (int i = 0; i < 4; ++i) compressor.compress(noise(200'000, 2), 4);
}

}  // namespace chunk_compressor_test
}  // namespace stepop
