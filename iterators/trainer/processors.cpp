// The preprocessors and postprocessors between samplers and models.
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "iterators/trainer/model_sampler.h"
#include "runtime/core/base/error.h"

namespace stepop {
namespace {

struct BytesParams {
  std::string text = "prompt";
  std::string tokens = "tokens";
  int64_t length = 77;

  void declare(Parameters& p) {
    p.add("text", text, "the texts");
    p.add("tokens", tokens, "the name of the numbers");
    p.add("length", length, "of each row; longer texts are cut", at_least(1));
  }
};

/// The bytes of each text of the batch as numbers from 1 to 256, padded with 0: [N, length], int64.
Preprocessor bytes(const BytesParams& params) {
  return [params](const Batch& batch) {
    const int64_t length = params.length;
    const auto& texts = batch.text(params.text);
    const at::Tensor numbers = at::zeros({static_cast<int64_t>(texts.size()), length}, at::kLong);
    auto* row = numbers.mutable_data_ptr<int64_t>();
    for (const auto& one : texts) {
      const size_t count = std::min(one.size(), static_cast<size_t>(length));
      for (size_t i = 0; i < count; ++i) row[i] = static_cast<unsigned char>(one[i]) + int64_t{1};
      row += length;
    }
    Batch with_tokens = batch;
    with_tokens.set(params.tokens, numbers);
    return with_tokens;
  };
}

Postprocessor zero_one(const Config&) {
  return [](const at::Tensor& samples) { return samples.mul(2).sub(1); };
}

/// The defaults are the values of OpenAI's CLIP.
struct NormalizedParams {
  std::vector<double> mean = {0.48145466, 0.4578275, 0.40821073};
  std::vector<double> std = {0.26862954, 0.26130258, 0.27577711};

  void declare(Parameters& p) {
    p.add("mean", mean, "of each channel, of images in [0, 1]; by default CLIP's");
    const Config* config = p.describe({"std",
                                       "[0.26862954, 0.26130258, 0.27577711]",
                                       "the standard deviation of each",
                                       false,
                                       {.kind = "list of number"}});
    if (config == nullptr) return;
    std = config->get("std", std);
    if (!mean.empty() && mean.size() == std.size()) return;
    throw config->error("std", fmt::format("expected a number for each channel, as mean has them: "
                                           "{}, found {}",
                                           mean.size(), std.size()));
  }
};

/// Undoes (x - mean) / std of images in [0, 1], by channel.
Postprocessor normalized(const NormalizedParams& params) {
  return [mean = params.mean, deviation = params.std](const at::Tensor& samples) {
    const auto by_channel = [&](const std::vector<double>& numbers) {
      return at::tensor(numbers, samples.options()).view({-1, 1, 1});
    };
    return samples.mul(by_channel(deviation)).add(by_channel(mean)).mul(2).sub(1);
  };
}

STEPOP_REGISTER_PREPROCESSOR(bytes, bytes,
                             {"The bytes of each text as numbers, 0 after its end: [N, length]."});
STEPOP_REGISTER_POSTPROCESSOR(zero_one, zero_one, {"Samples in [0, 1].", {}});
STEPOP_REGISTER_POSTPROCESSOR(normalized, normalized, {"Samples that were normalized by channel."});

}  // namespace
}  // namespace stepop
