#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/components/parameters.h"

namespace stepop::unet_diffusion {

/// The options of a UNetModel, with the names of guided-diffusion.
struct Options {
  int64_t image_size = 1;
  int64_t in_channels = 0;
  int64_t model_channels = 0;
  int64_t out_channels = 0;
  int64_t num_res_blocks = 0;
  std::vector<int64_t> attention_resolutions;
  double dropout = 0;
  std::vector<int64_t> channel_mult = {1, 2, 4, 8};
  bool conv_resample = true;
  int64_t dims = 2;
  std::optional<int64_t> num_classes;
  int64_t num_heads = 1;
  int64_t num_head_channels = -1;
  int64_t num_heads_upsample = -1;
  bool use_scale_shift_norm = false;
  bool resblock_updown = false;
  bool use_new_attention_order = false;
  bool use_raw_y_as_embedding = false;
  bool use_fp16 = false;

  void declare(Parameters& p) {
    p.add("image_size", image_size, "of no effect: any size goes in", at_least(1));
    p.require("in_channels", in_channels, "of x, and of low_res where there is one", at_least(1));
    p.require("model_channels", model_channels, "channels of the first level", at_least(4));
    p.require("out_channels", out_channels, "twice those of x where the variances are learned",
              at_least(1));
    p.require("num_res_blocks", num_res_blocks, "of each level", at_least(1));
    p.require("attention_resolutions", attention_resolutions,
              "how many times smaller the levels are that attend, [2, 4]");
    p.add("dropout", dropout, "probability of a number to be left out, in residual blocks",
          at_least(0).below(1));
    p.add("channel_mult", channel_mult, "channels of each level, times model_channels",
          at_least(1));
    p.add("conv_resample", conv_resample, "false: sizes are changed by averages and copies");
    p.add("dims", dims, "1: sequences, whose levels are four times smaller each",
          at_least(1).at_most(2));
    p.add("num_classes", num_classes, "the input y is the class", at_least(1));
    p.add("num_heads", num_heads, "of attention", at_least(1));
    p.add("num_head_channels", num_head_channels, "in place of num_heads: the channels of one head",
          at_least(-1));
    p.add("num_heads_upsample", num_heads_upsample, "in the second half, where another number",
          at_least(-1));
    p.add("use_scale_shift_norm", use_scale_shift_norm,
          "timesteps scale and shift, in place of being added");
    p.add("resblock_updown", resblock_updown, "sizes are changed within residual blocks");
    p.add("use_new_attention_order", use_new_attention_order,
          "of the channels of queries, keys and values");
    p.add("use_raw_y_as_embedding", use_raw_y_as_embedding,
          "the input y is added to the timesteps' embedding");
    p.add("use_fp16", use_fp16, "false: precision: bfloat16 of the config is there instead");
  }
};

}  // namespace stepop::unet_diffusion
