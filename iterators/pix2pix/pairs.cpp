#include "iterators/pix2pix/pairs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "eval_out/callbacks/row_values.h"
#include "iterators/metrics/similarity.h"

namespace stepop::pix2pix {

at::Tensor side_by_side(const at::Tensor& input, const at::Tensor& fake, const at::Tensor& target) {
  std::vector<at::Tensor> images;
  int64_t channels = 1;
  for (const at::Tensor& image : {input, fake, target}) {
    const int64_t shown = image.size(1) < 3 ? 1 : 3;
    channels = std::max(channels, shown);
    images.push_back(image.slice(1, 0, shown).to(at::kFloat));
  }
  for (at::Tensor& image : images) image = image.expand({-1, channels, -1, -1});
  return at::cat(images, 3);
}

namespace {

struct PairParams {
  std::string input = "input";
  std::string fake = "fake";
  std::string target = "target";
  int64_t count = 12;

  void declare(Parameters& p) {
    p.add("input", input, "the key of what went in, in the outputs or the dataset");
    p.add("fake", fake, "the key of what came out, in the outputs");
    p.add("target", target, "the key of what should have, in the outputs or the dataset");
    p.add("count", count, "pairs in the picture", at_least(1));
  }
};

/// The values that the callback reads from an evaluation.
struct Pairs {
  using From = RowValues::From;

  Pairs(const CallbackArguments& arguments, const PairParams& params)
      : input(arguments, params.input, "input", From::kFileOrDataset),
        fake(arguments, params.fake, "fake", From::kFile),
        target(arguments, params.target, "target", From::kFileOrDataset) {
    check_images(fake);
    check_images(target);
    check_pair(fake, target);
  }

  RowValues input, fake, target;
};

/// The PSNR in dB of the best constant image, the mean of all targets.
double psnr_of_constant(const CallbackArguments& arguments, const Pairs& pairs) {
  const int64_t rows = pairs.target.rows();
  const auto for_each_target = [&](const auto& take) {
    for_each_block(rows, pairs.target.rows_per_block(), [&](int64_t first, int64_t count) {
      arguments.data_out.throw_if_interrupted();
      take(to_images(pairs.target.read(first, count)).to(at::kDouble));
    });
  };
  at::Tensor mean;
  for_each_target([&](const at::Tensor& targets) {
    const at::Tensor sum = targets.sum(0, /*keepdim=*/true);
    mean = mean.defined() ? mean + sum : sum;
  });
  mean = mean / static_cast<double>(rows);
  double sum = 0;
  for_each_target([&](const at::Tensor& targets) {
    sum += metrics::psnr(mean.expand_as(targets), targets, 2).sum().item<double>();
  });
  return sum / static_cast<double>(rows);
}

double psnr_of_fakes(const CallbackArguments& arguments, const Pairs& pairs) {
  double sum = 0;
  for_each_block(pairs.fake.rows(), pairs.fake.rows_per_block(), [&](int64_t first, int64_t count) {
    arguments.data_out.throw_if_interrupted();
    sum += metrics::psnr(to_images(pairs.fake.read(first, count)),
                         to_images(pairs.target.read(first, count)), 2)
               .sum()
               .item<double>();
  });
  return sum / static_cast<double>(pairs.fake.rows());
}

Logs show_pairs(const CallbackArguments& arguments, const PairParams& params) {
  const Pairs pairs(arguments, params);
  const int64_t count = std::min(params.count, pairs.fake.rows());
  const double constant = psnr_of_constant(arguments, pairs);
  const double psnr = psnr_of_fakes(arguments, pairs);
  return {.scalars = {{"psnr", psnr},
                      {"psnr_of_constant", constant},
                      {"psnr_above_constant", psnr - constant}},
          .images = {{"input_fake_target", side_by_side(to_images(pairs.input.read(0, count)),
                                                        to_images(pairs.fake.read(0, count)),
                                                        to_images(pairs.target.read(0, count)))}}};
}

STEPOP_REGISTER_CALLBACK(
    image_pairs, show_pairs,
    {"A picture of pairs, what went in, what came out and what should have; and PSNR in dB beside "
     "that of the best constant image."});
STEPOP_CALLBACK_KEYS(image_pairs, {"input"}, {"fake", KeyParameter::From::kFile}, {"target"});

}  // namespace
}  // namespace stepop::pix2pix
