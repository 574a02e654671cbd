#include "models/vunet/decoder.h"

#include <ATen/ops/tanh.h>

namespace stepop::vunet {

Decoder::Decoder(const Options& options, int64_t image_channels, bool has_tanh)
    : stages_(options.stages), has_tanh_(has_tanh) {
  blocks_ = register_module("blocks", std::make_shared<Modules<ResBlock>>());
  ups_ = register_module("ups", std::make_shared<Modules<Up>>());
  for (int64_t stage = stages_ - 2; stage >= 1; --stage) {
    const int64_t nf = stage == 1 ? options.nf_max / 2 : options.nf_max;
    ups_->add(stage_name(stage + 1), std::make_shared<Up>(options, options.nf_max, nf));
    for (const int64_t block : {2, 1}) {
      blocks_->add(block_name(stage, block),
                   std::make_shared<ResBlock>(options, nf, /*has_skip=*/true));
    }
  }
  final_layer_ =
      register_module("final_layer", make_conv(options, options.nf_max / 2, image_channels));
}

at::Tensor Decoder::forward(at::Tensor h, const Features& pose) const {
  for (int64_t stage = stages_ - 2; stage >= 1; --stage) {
    h = (*ups_)[stage_name(stage + 1)].forward(h);
    for (const int64_t block : {2, 1}) {
      const std::string name = block_name(stage, block);
      h = (*blocks_)[name].forward(h, pose.at(name));
    }
  }
  h = final_layer_->forward(h);
  return has_tanh_ ? at::tanh(h) : h;
}

}  // namespace stepop::vunet
