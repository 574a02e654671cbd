// Every bit of a tensor survives the way to Python and back: NaNs with what they carry, -0.0,
// numbers below the normal ones.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <limits>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace safetensors_bits_test {

/// The tensors of safetensors_bits.py: all bit patterns of 16 bits, telling ones of 32 and 64.
State bit_patterns() {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const at::Tensor every_16 = at::arange(-32768, 32768, at::kInt).to(at::kShort);
  const at::Tensor some_64 = at::tensor({int64_t{0}, kLeast, int64_t{1}, int64_t{-1}, kMost,
                                         int64_t{0x7ff8000000000001}, int64_t{0x7ff0000000000000}});
  const at::Tensor some_32 =
      at::tensor({int64_t{0}, int64_t{-2147483648}, int64_t{1}, int64_t{-1}, int64_t{2147483647},
                  int64_t{0x7fc00001}, int64_t{0x7f800000}})
          .to(at::kInt);
  const State whole = {{"float16", every_16.view(at::kHalf)},
                       {"bfloat16", every_16.view(at::kBFloat16)},
                       {"float32", some_32.view(at::kFloat)},
                       {"float64", some_64.view(at::kDouble)},
                       {"int64", some_64},
                       {"bool", at::tensor({1, 0, 0, 1, 1}).to(at::kBool)}};
  State tensors = whole;
  for (const auto& [name, tensor] : whole) {
    tensors[name + ".scalar"] = tensor[1];
    tensors[name + ".empty"] = at::empty({0, 2}, tensor.options());
  }
  tensors["bfloat16.matrix"] = tensors["bfloat16"].reshape({256, 2, 128});
  return tensors;
}

std::string run_peer(const std::string& command, const std::string& path) {
  return run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/core/formats/safetensors_bits.py"),
                    {command, path});
}

TEST_CASE("Python reads a checkpoint of ours with the same bits, of every type") {
  const ScratchFolder folder;
  const Checkpoint saved{bit_patterns(), {}, "a: 1\n"};
  CHECK(run_peer("check", save_checkpoint(folder.path(), saved)) == "19 tensors\n");
}

TEST_CASE("we read what Python saved with the same bits, of every type") {
  const ScratchFolder folder;
  run_peer("write", folder / "theirs");
  CHECK(differences(load_safetensors(folder / "theirs").tensors, bit_patterns()) == "");
}

TEST_CASE("our own checkpoint comes back with the same bits, and the check sees a single one") {
  const ScratchFolder folder;
  const Checkpoint saved{bit_patterns(), {}, "a: 1\n"};
  State loaded = load_checkpoint(save_checkpoint(folder.path(), saved)).tensors;
  CHECK(differences(loaded, saved.tensors) == "");
  loaded["float32"].view(at::kInt)[5].bitwise_xor_(1);  // in a NaN
  CHECK(differences(loaded, saved.tensors) == "float32 ");
}

}  // namespace safetensors_bits_test
}  // namespace stepop
