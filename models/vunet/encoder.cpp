#include "models/vunet/encoder.h"

#include <algorithm>

namespace stepop::vunet {

Encoder::Encoder(const Options& options, int64_t image_channels)
    : stages_(options.stages),
      in_op_(register_module("in_op", make_conv(options, image_channels, options.nf_start))),
      blocks_(register_module("blocks", std::make_shared<Modules<ResBlock>>())),
      downs_(register_module("downs", std::make_shared<Modules<Down>>())) {
  int64_t nf = options.nf_start;
  for (int64_t stage = 1; stage <= stages_; ++stage) {
    if (stage > 1) {
      const int64_t next = std::min(2 * nf, options.nf_max);
      downs_->add(stage_name(stage), std::make_shared<Down>(options, nf, next));
      nf = next;
    }
    for (const int64_t block : {1, 2}) {
      blocks_->add(block_name(stage, block),
                   std::make_shared<ResBlock>(options, nf, /*has_skip=*/false));
    }
  }
}

Features Encoder::forward(const at::Tensor& images) const {
  Features features;
  at::Tensor h = in_op_->forward(images);  // [B, nf_start, W, W]
  for (int64_t stage = 1; stage <= stages_; ++stage) {
    if (stage > 1) h = (*downs_)[stage_name(stage)].forward(h);
    for (const int64_t block : {1, 2}) {
      const std::string name = block_name(stage, block);
      h = (*blocks_)[name].forward(h);
      features.set(name, h);
    }
  }
  return features;  // the last [B, nf_max, 1, 1]
}

}  // namespace stepop::vunet
