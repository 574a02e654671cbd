#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/components/parameters.h"

namespace stepop::srflow {

/// The options of a flow, `flow: {...}`, with the names of DL-Art-School.
struct FlowOptions {
  int64_t levels = 3;
  std::vector<int64_t> steps = {16};
  std::string coupling = "CondAffineSeparatedAndCond";
  int64_t coupling_hidden = 64;
  double coupling_eps = 1e-4;
  std::string permutation = "invconv";
  int64_t transition_steps = 0;
  bool splits = false;
  bool corrects_splits = false;
  double consume_ratio = 0.5;
  double logs_eps = 0;
  std::string split_type = "Split2d";
  std::vector<int64_t> blocks;
  bool stacks_blocks = false;
  double loss_weight = 1;
  bool has_noise = true;
  int64_t patch_size = 160;
  bool fea_up0 = false;
  bool fea_up_1 = false;
  bool no_initial_injector = false;

  void declare(Parameters& p) {
    p.add("L", levels, "levels, each with half the size of the one before", at_least(1).at_most(4));
    const Config* config =
        p.describe({"K",
                    "16",
                    "steps of each level; a list has one number for each, behind a first that "
                    "counts for none",
                    false,
                    {.kind = "int | list of int", .range = at_least(0)}});
    if (config != nullptr && config->has("K")) read_steps(*config);
    p.add("coupling", coupling, "noCoupling: no step sees the smaller image",
          one_of({"CondAffineSeparatedAndCond", "noCoupling"}));
    p.add("CondAffineSeparatedAndCond/hidden_channels", coupling_hidden,
          "channels within a coupling", at_least(1));
    p.add("CondAffineSeparatedAndCond/eps", coupling_eps, "the smallest scale of a coupling",
          at_least(0));
    p.add("flow_permutation", permutation, "of the channels", one_of({"invconv"}));
    p.add("additionalFlowNoAffine", transition_steps,
          "steps without coupling at the beginning of each level", at_least(0));
    p.add("split/enable", splits, "half of the channels of a level leave the flow");
    p.add("split/correct_splits", corrects_splits,
          "behind all levels but the last; false: all but the last two");
    p.add("split/consume_ratio", consume_ratio, "the part of the channels that leaves",
          above(0).below(1));
    p.add("split/logs_eps", logs_eps, "added to the standard deviation of those that leave",
          at_least(0));
    p.add("split/type", split_type, "how they leave", one_of({"Split2d"}));
    p.add("stackRRDB/blocks", blocks, "of RRDB, counted from 0, whose outputs are features",
          at_least(0));
    p.add("stackRRDB/concat", stacks_blocks, "true: each level sees them");
    p.add("gaussian_loss_weight", loss_weight, "of the channels that leave early");
    p.add("augmentation/noiseQuant", has_noise, "a training adds noise as large as steps of quant");
    p.add("patch_size", patch_size, "of no effect: any size goes in", at_least(1));
    p.add("fea_up0", fea_up0, "of no effect: a level has the features that it needs");
    p.add("fea_up-1", fea_up_1, "of no effect, likewise");
    p.add("noInitialInj", no_initial_injector, "of no effect");
  }

  /// How many steps a level has, counted from 1.
  int64_t steps_of(int64_t level) const {
    return steps.size() == 1 ? steps.front() : steps.at(static_cast<size_t>(level));
  }

 private:
  void read_steps(const Config& config) {
    if (!config.peek("K")->is_list()) {
      steps = {config.get<int64_t>("K")};
    } else {
      steps = config.get<std::vector<int64_t>>("K");
      if (static_cast<int64_t>(steps.size()) != levels + 1) {
        throw config.error("K", "expected a number, or a list of " + std::to_string(levels + 1) +
                                    ", one more than L, found " + std::to_string(steps.size()));
      }
    }
    for (const int64_t count : steps) {
      if (count < 0) throw config.error("K", "expected 0 or more, found " + std::to_string(count));
    }
  }
};

/// The options of SRFlow, with the names of DL-Art-School.
struct Options {
  int64_t nf = 64;
  int64_t nb = 23;
  int64_t gc = 32;
  int64_t scale = 4;
  int64_t initial_stride = 1;
  std::optional<int64_t> flow_scale;
  bool train_rrdb = false;
  bool rrdb_bypass = false;
  double quant = 255;
  std::optional<int64_t> steps;

  void declare(Parameters& p) {
    p.describe_required("flow", "map",
                        "what the flow is made of, by the names of DL-Art-School: L, K, coupling, "
                        "additionalFlowNoAffine, split, stackRRDB...");
    p.add("nf", nf, "channels of RRDB", at_least(1));
    p.add("nb", nb, "blocks of RRDB", at_least(1));
    p.add("gc", gc, "channels that each convolution of a block adds", at_least(1));
    p.add("scale", scale, "how many times larger RRDB makes its features: 4, 8, 16 or 32");
    p.add("initial_stride", initial_stride, "of RRDB's first convolution", at_least(1));
    p.add("flow_scale", flow_scale,
          "how many times larger than RRDB's first features the image is: 4, 8 or 16; by default "
          "scale");
    p.add("train_RRDB", train_rrdb, "false: the loss does not change RRDB");
    p.add("rrdb_bypass", rrdb_bypass, "blocks of RRDB that each place weighs");
    p.add("quant", quant, "how many steps there are between 0 and 1 in the pictures of a training",
          above(0));
    p.add("K", steps, "steps of each level; counts before a flow/K that is one number",
          at_least(0));
    refuse_weights(p, "pretrain_rrdb", "RRDB.");
  }

  /// Weights of RRDB come from `init_from`, in which `prefix` is put before their names.
  static void refuse_weights(Parameters& p, const char* key, const std::string& prefix) {
    const std::string instead = "init_from: {path: FILE, network: NAME, map: {conv_: " + prefix +
                                "conv_, body.: " + prefix +
                                "body.}, strict: false}, at the top of the config";
    const Config* config =
        p.describe_optional(key, "path", "a file of weights is named by init_from");
    if (config == nullptr || !config->has(key)) return;
    throw config->error(key, "a key of DL-Art-School; here: " + instead);
  }
};

}  // namespace stepop::srflow
