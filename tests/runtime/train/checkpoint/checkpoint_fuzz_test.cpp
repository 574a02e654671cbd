// Whatever happens to the bytes of a checkpoint: an Error, or the very content that was saved.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors_reader.h"
#include "runtime/core/system/checksum.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/fuzz.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace checkpoint_fuzz_test {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  /// `bytes` with one to four things done to it.
  std::string mutate(std::string bytes) {
    for (uint64_t count = 1 + below(4); count > 0; --count) change(bytes);
    return bytes;
  }

  uint64_t below(uint64_t end) { return end == 0 ? 0 : random_() % end; }

 private:
  void change(std::string& bytes) {
    // Half of all changes hit the header, where they can do the most.
    const size_t end = below(2) == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 700);
    const size_t at = below(end);
    const size_t size = below(std::min<size_t>(bytes.size() - at, 40) + 1);
    switch (below(8)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.append(size, static_cast<char>(below(256)));
        break;
      case 4:
        bytes.insert(below(bytes.size() + 1), bytes.substr(at, size));
        break;
      case 5:
        bytes.erase(at, size);
        break;
      case 6:
        bytes.replace(at, size, size, '\0');
        break;
      default:
        replace_word(bytes);
    }
  }

  /// Another number, bracket or type in place of what looks like one.
  void replace_word(std::string& bytes) {
    static const std::vector<std::string> words = {"18446744073709551615",
                                                   "9223372036854775807",
                                                   "-1",
                                                   "0",
                                                   "1e999",
                                                   "null",
                                                   "[]",
                                                   "{}",
                                                   "[[",
                                                   "\"F64\"",
                                                   "4096",
                                                   "\"model.w\""};
    const size_t found = bytes.find_first_of("0123456789[{\"", below(bytes.size()));
    if (found == std::string::npos) return;
    bytes.replace(found, 1 + below(3), words[below(words.size())]);
  }

  std::mt19937_64 random_;
};

/// Gives the header its length and the file the checksum that it then has, where it has one, so
/// that what lies behind these two checks is reached.
void seal(std::string& bytes) {
  const size_t brackets = bytes.rfind("}}");
  if (brackets == std::string::npos || brackets < 8) return;
  const uint64_t length = std::min(bytes.find_first_not_of(' ', brackets + 2), bytes.size()) - 8;
  std::memcpy(bytes.data(), &length, 8);
  const size_t digits = find_checksum_digits(bytes);
  if (digits == std::string::npos) return;
  bytes.replace(digits, Checksum::kDigits, Checksum::kDigits, '0');
  Checksum checksum;
  checksum.add(bytes);
  bytes.replace(digits, Checksum::kDigits, checksum.text());
}

Checkpoint original() {
  Checkpoint checkpoint;
  const at::Tensor w = at::arange(12, at::kFloat).view({3, 4});
  checkpoint.tensors = {{"model.w", w},
                        {"model.tied", w},
                        {"model.half", at::arange(5, at::kHalf)},
                        {"model.empty", at::zeros({0, 7})},
                        {"optimizer.step.value", at::arange(1)}};
  checkpoint.config = "model: {class: LeNet}\n";
  checkpoint.progress.global_step = 3;
  checkpoint.progress.batches_taken = {{"validation", 2}};
  return checkpoint;
}

TEST_CASE("a mutated checkpoint gives an Error or the very content") {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(2000);
  CAPTURE(seed);
  const ScratchFolder folder;
  const Checkpoint saved = original();
  const std::string path = save_checkpoint(folder.path(), saved);
  const std::string bytes = read_bytes(path);
  Mutator mutator(seed);
  uint64_t loads = 0;
  for (uint64_t i = 0; i < count; ++i) {
    CAPTURE(i);
    std::string mutated = mutator.mutate(bytes);
    const bool is_sealed = i % 2 == 1;
    if (is_sealed) seal(mutated);
    write_bytes(path, mutated);
    const std::optional<std::string> reason = verify_checkpoint(path);
    try {
      read_checkpoint_header(path);
    } catch (const Error&) {
    }
    try {
      const Checkpoint loaded = load_checkpoint(path);
      REQUIRE_FALSE(reason.has_value());
      ++loads;
      if (is_sealed) continue;
      REQUIRE(differences(loaded.tensors, saved.tensors) == "");
      REQUIRE(loaded.config == saved.config);
      REQUIRE(loaded.progress.to_json() == saved.progress.to_json());
    } catch (const Error& error) {
      REQUIRE(std::string(error.what()).size() > path.size() + 10);
      REQUIRE(reason.has_value());
    }
  }
  CHECK(loads >= count / 100);  // or the mutations do not get far
}

}  // namespace checkpoint_fuzz_test
}  // namespace stepop
