// Whatever the bytes of a file of outputs are, all of it is read, or refused with an Error, within
// time and memory; and an evaluation that finds it where it wants to write gets its file.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "eval_out/callbacks/stored_config.h"
#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/read/eval_reader.h"
#include "eval_out/read/eval_statistics.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/base/error.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/dataset.h"
#include "tests/fuzz.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace outputs_fuzz_test {

constexpr int64_t kRows = 12;

EvalOutputs batch(int64_t first, int64_t count) {
  EvalOutputs outputs;
  outputs.outputs.set("logits", at::arange(3 * count, at::kFloat).view({count, 3}));
  outputs.outputs.set("deep/er/image", at::zeros({count, 3, 8, 8}, at::kByte));
  std::vector<std::string> texts;
  std::vector<at::Tensor> boxes;
  for (int64_t i = first; i < first + count; ++i) {
    texts.push_back("text " + std::string(static_cast<size_t>(i), 'x'));
    boxes.push_back(at::ones({i % 3, 2}, at::kInt));
  }
  outputs.outputs.set("text", texts);
  outputs.outputs.set("boxes", boxes);
  outputs.labels.set("loss", at::ones({count}));
  return outputs;
}

OrderedMap<Attribute> attributes() {
  return {{"global_step", int64_t{12}},
          {"split", std::string("validation")},
          {"config", std::string("eval_hook: {eval_callbacks: {acc: accuracy}}\n")},
          {"git", std::string(3000, 'g')}};
}

/// Our own outputs: whole, or what a kill leaves behind four rows.
std::string written(EvalCompression compression, bool is_whole) {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  {
    EvalWriter writer(path, kRows, attributes(),
                      {.gather_time = std::chrono::milliseconds(0), .compression = compression});
    for (int64_t first = 0; first < (is_whole ? kRows : 8); first += 4) {
      const std::array<int64_t, 4> indices = {first, first + 1, first + 2, first + 3};
      writer.write(batch(first, 4), indices);
    }
    if (is_whole) writer.finish();
  }
  return read_bytes(is_whole ? path : path + ".part");
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> signatures = {"\x89HDF\r\n\x1a\n",
                                                      "TREE",
                                                      "SNOD",
                                                      "HEAP",
                                                      "GCOL",
                                                      "OHDR",
                                                      "OCHK",
                                                      "FRHP",
                                                      "FHDB",
                                                      "FHIB",
                                                      "BTHD",
                                                      "BTLF",
                                                      "BTIN",
                                                      "EAHD",
                                                      "EAIB",
                                                      "FAHD",
                                                      "FADB",
                                                      "FSHD"};
  return signatures;
}

void read_all(const std::string& path) {
  const EvalFile file(path);
  file.index();
  read_stored_config(file);
  for (const auto& array : file.arrays()) {
    statistics_of(file, array.key);
    if (array.kind == EvalKind::kText) file.read_texts(array.key, 0, file.rows());
  }
}

void read_dataset(const char* type, const std::string& path) {
  const Config config(parse_yaml(
      "data: {class: " + std::string(type) + ", path: " + path + ", allow_incomplete: true}\n",
      {"a.yaml", 0}));
  const auto dataset = datasets().build(config, "data");
  std::vector<Random> randoms(2, Random(0));
  const std::array<int64_t, 2> rows = {dataset->size() - 1, 0};
  load_batch(*dataset, rows, randoms);
}

/// Calls `look`; whether it found no Error. Each Error names the file.
template <class Look>
bool passes(const std::string& path, const Look& look) {
  try {
    look();
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    CAPTURE(message);
    REQUIRE(message.find(path.substr(path.rfind('/'))) != std::string::npos);
    return false;
  }
}

/// Mutated files of outputs, of all kinds.
template <class Case>
void fuzz(const char* kind, const std::vector<std::string>& seeds, uint64_t fallback,
          const Case& one) {
  const uint64_t seed = fuzz_seed();
  CAPTURE(seed);
  const uint64_t count = fuzz_count(fallback);
  FuzzWatch watch(kind, seed);
  uint64_t are_read = 0;
  for (uint64_t i = fuzz_first(); i < fuzz_first() + count; ++i) {
    CAPTURE(i);
    ByteMutator mutator(seed * 1'000'003 + i, words(), words());
    const std::string bytes = mutator.mutate(seeds[mutator.below(seeds.size())]);
    watch.run(i, [&] { are_read += one(bytes) ? 1 : 0; });
  }
  CHECK(are_read >= count / 20);  // or the mutations do not get far
}

TEST_CASE("mutated outputs are read or refused") {
  std::vector<std::string> seeds = {written(EvalCompression::kNone, true),
                                    written(EvalCompression::kGzip, true),
                                    written(EvalCompression::kNone, false)};
  for (const char* name : {"plain", "later"}) {
    seeds.push_back(read_bytes(std::string(STEPOP_SOURCE_DIR "/tests/data/hdf5/") + name + ".h5"));
  }
  const ScratchFolder folder;
  fuzz("HDF5 outputs", seeds, 150, [&](const std::string& bytes) {
    const std::string path = folder.write("outputs.h5", bytes);
    const bool is_read = passes(path, [&] { read_all(path); });
    passes(path, [&] { read_dataset("Hdf5", path); });
    passes(path, [&] { read_dataset("EvalOutputs", path); });
    return is_read;
  });
}

TEST_CASE("an evaluation that finds a mutated .part resumes it, or writes its own") {
  const std::vector<std::string> seeds = {written(EvalCompression::kNone, false),
                                          written(EvalCompression::kGzip, false)};
  const ScratchFolder folder;
  fuzz("HDF5 .part", seeds, 100, [&](const std::string& bytes) {
    const std::string path = folder.path("outputs.h5");
    folder.write("outputs.h5.part", bytes);
    std::filesystem::remove(path);
    return passes(path, [&] {
      EvalWriter writer(path, kRows, attributes(), {.resume = true});
      for (int64_t first = writer.rows(); first < kRows; ++first) {
        const std::array<int64_t, 1> index = {first};
        writer.write(batch(first, 1), index);
      }
      writer.finish();
      read_all(path);
    });
  });
}

}  // namespace outputs_fuzz_test
}  // namespace stepop
