#include "runtime/train/step/call_op.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"

namespace stepop {
namespace call_op_test {

std::string message(const Logs& logs) {
  return message_of([&] { checked(logs, "train/log_op"); });
}

TEST_CASE("what a log op returns is looked at before anything is written") {
  CHECK(message({.images = {{"a", at::zeros({1, 1, 2, 2})}},
                 .histograms = {{"b", at::zeros({2, 3}, at::kLong)}},
                 .curves = {{"c", {at::zeros({2}), at::ones({2})}}}}) == "no error");
  CHECK(
      message({.images = {{"a", at::zeros({1, 1, 2, 2})}}, .histograms = {{"a", at::ones({2})}}}) ==
      "train/log_op/a: two of images, videos, audio, histograms and curves have this name");
  CHECK(message({.audio = {{"a", {at::zeros({1, 2}), 8000}}}}) == "no error");
  CHECK(message({.audio = {{"a", {at::zeros({1, 2}), 8000}}}, .histograms = {{"a", at::ones({2})}}})
            .starts_with("train/log_op/a: two of images, "));
  CHECK(message({.audio = {{"a", {at::zeros({2}), 8000}}}})
            .starts_with("train/log_op/a: expected a batch of sounds, "));
  CHECK(message({.histograms = {{"b", {}}}}) ==
        "train/log_op/b: expected a real tensor for a histogram, found an undefined tensor");
  CHECK(message({.histograms = {{"b", at::zeros({2}, at::kComplexFloat)}}})
            .starts_with("train/log_op/b: expected a real tensor for a histogram, found "));
  const std::string curve =
      "train/log_op/c: expected a curve, real x and y [N] with N of 1 or more";
  CHECK(message({.curves = {{"c", {at::zeros({2}), at::ones({3})}}}}).starts_with(curve));
  CHECK(message({.curves = {{"c", {at::zeros({0}), at::ones({0})}}}}).starts_with(curve));
  CHECK(message({.curves = {{"c", {at::zeros({2, 1}), at::ones({2})}}}}).starts_with(curve));
  CHECK(message({.curves = {{"c", {{}, at::ones({2})}}}}).starts_with(curve));
  CHECK(message({.curves = {{"../c", {at::zeros({2}), at::ones({2})}}}})
            .starts_with("the curve \"../c\" cannot be a file: "));
}

}  // namespace call_op_test
}  // namespace stepop
