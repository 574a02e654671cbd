// Files for the tests of eval_out/python, written by the real writer:
//   stepop_output_files rich PATH         every kind of array, in a file that is complete
//   stepop_output_files gzip PATH         compressed arrays, in a file that is complete
//   stepop_output_files unfinished PATH   320 of a million rows; prints +, then waits to be killed
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "eval_out/write/eval_writer.h"

namespace stepop {
namespace {

std::vector<int64_t> range(int64_t first, int64_t count, int64_t step = 1) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back((first + i) * step);
  return values;
}

/// Value j of row i is 100 * i + j.
at::Tensor rows(int64_t first, int64_t count, std::vector<int64_t> shape) {
  const int64_t each = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  shape.insert(shape.begin(), count);
  return at::arange(first, first + count).mul(100).unsqueeze(1).add(at::arange(each)).view(shape);
}

EvalOutputs rich_batch(int64_t first, int64_t count) {
  std::vector<at::Tensor> boxes;
  std::vector<std::string> texts;
  std::vector<float> loss;
  for (int64_t i = first; i < first + count; ++i) {
    boxes.push_back(rows(i, 1, {i % 3, 4})[0].to(at::kInt));
    texts.push_back(i % 4 == 0 ? "" : "Zeile " + std::to_string(i) + " \xc3\xa4\xf0\x9f\x98\x80");
    loss.push_back(i == 3 ? NAN : static_cast<float>(i * 7 % 5));
  }
  const at::Tensor i = at::arange(first, first + count);
  return {.outputs = {{"logits", rows(first, count, {4}).to(at::kFloat)},
                      {"image", rows(first, count, {3, 4, 5}).remainder(256).to(at::kByte)},
                      {"half", i.to(at::kHalf).div(2)},
                      {"bfloat16", i.to(at::kBFloat16).div(4)},
                      {"flag", i.remainder(2).eq(0)},
                      {"complex", i.to(at::kComplexFloat).mul(c10::complex<double>(1, -2))},
                      {"empty", at::zeros({count, 0})},
                      {"encoder/mean", rows(first, count, {2}).to(at::kDouble)},
                      {"encoder/deep/text", texts},
                      {"boxes", boxes}},
          .labels = {{"loss", at::tensor(loss)},
                     {"correct", i.remainder(3).eq(0)},
                     {"count", i.mul(-1)},
                     {"group/score", i.to(at::kDouble).div(8)},
                     {"center", rows(first, count, {2}).to(at::kFloat)}}};
}

/// 12 rows in batches of 5; row i is example 2 * i of its dataset.
void write_rich(const std::string& path) {
  EvalWriter writer(path, 12,
                    {{"global_step", int64_t{70}},
                     {"split", "test"},
                     {"config", "optimizer: {lr: 1.0e-3}\nname: \"{{a}}\"\n"},
                     {"note", "for tests"},
                     {"epoch", 2.5}});
  for (int64_t first = 0; first < 12; first += 5) {
    const int64_t count = std::min<int64_t>(5, 12 - first);
    writer.write(rich_batch(first, count), range(first, count, 2));
  }
  writer.finish();
}

/// 500 rows in batches of 16; see `rows` for the values, of which the image has the remainder by
/// 256.
void write_gzip(const std::string& path) {
  constexpr int64_t kRows = 500;
  constexpr int64_t kBatch = 16;
  EvalWriter writer(path, kRows, {{"global_step", int64_t{5}}},
                    {.compression = EvalCompression::kGzip});
  for (int64_t first = 0; first < kRows; first += kBatch) {
    const int64_t count = std::min(kBatch, kRows - first);
    writer.write(
        {.outputs = {{"features", rows(first, count, {300}).to(at::kFloat)},
                     {"image", rows(first, count, {3, 32, 32}).remainder(256).to(at::kByte)}},
         .labels = {{"loss", at::arange(first, first + count, at::kFloat)}}},
        range(first, count));
  }
  writer.finish();
}

/// Row i: x is [i, i], the text is "row i", the ragged array has i % 5 values i.
void write_unfinished(const std::string& path) {
  constexpr int64_t kBatch = 16;
  EvalWriter writer(path, 1'000'000, {{"global_step", int64_t{5}}},
                    {.gather_time = std::chrono::milliseconds(0)});
  for (int64_t first = 0; first < 20 * kBatch; first += kBatch) {
    std::vector<at::Tensor> ragged;
    std::vector<std::string> texts;
    for (int64_t i = first; i < first + kBatch; ++i) {
      ragged.push_back(at::full({i % 5}, i));
      texts.push_back("row " + std::to_string(i));
    }
    const at::Tensor i = at::arange(first, first + kBatch).to(at::kDouble);
    writer.write({.outputs = {{"x", at::stack({i, i}, 1)}, {"ragged", ragged}, {"text", texts}},
                  .labels = {{"loss", i}}},
                 range(first, kBatch));
  }
  if (::write(STDOUT_FILENO, "+", 1) == 1) ::pause();
}

}  // namespace
}  // namespace stepop

int main(int argc, char** argv) try {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what == "rich") {
    stepop::write_rich(argv[2]);
  } else if (what == "gzip") {
    stepop::write_gzip(argv[2]);
  } else if (what == "unfinished") {
    stepop::write_unfinished(argv[2]);
  } else {
    std::fputs("stepop_output_files rich|gzip|unfinished PATH\n", stderr);
    return 2;
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "stepop_output_files: %s\n", error.what());
  return 1;
}
