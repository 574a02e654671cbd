// Losses that call a generator again, with a change of the input that should make no difference.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/rot90.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/losses/criterion.h"
#include "iterators/extensible/step/host_values.h"
#include "iterators/extensible/step/loss.h"
#include "iterators/extensible/step/network_call.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

struct InvarianceParams {
  Port generator;
  Criterion criterion;
  Port real;
  std::vector<Port> fake;
  int64_t altered = 0;
  int64_t output = 0;

  Parameters& declare(Parameters& p) {
    p.require("generator", generator, "the network");
    require_criterion(p, criterion);
    p.require("real", real, "what the network made");
    p.require("fake", fake, "its inputs");
    p.add("input_alteration_index", altered, "which of them changes", at_least(0));
    p.add("generator_output_index", output, "which of its outputs is compared", at_least(0));
    return p;
  }
};

/// The base of these losses: `generator`, its inputs `fake`, of which one is changed, and `real`,
/// the generator's output for the unchanged inputs.
class InvarianceLoss : public Loss {
 public:
  InvarianceLoss(const InvarianceParams& params, const Config& config, Ports& ports)
      : criterion_(params.criterion),
        real_(ports.reads(params.real)),
        fake_(ports.reads_all(params.fake)),
        altered_(params.altered),
        output_(params.output),
        generator_(params.generator, ports, fake_.size()) {
    if (altered_ >= static_cast<int64_t>(fake_.size())) {
      throw config.error("input_alteration_index",
                         fmt::format("expected less than the number of inputs, {}, found {}",
                                     fake_.size(), altered_));
    }
  }

 protected:
  std::vector<at::Tensor> inputs(const StepState& state) const {
    std::vector<at::Tensor> tensors;
    for (const Slot slot : fake_) tensors.push_back(state.tensor(slot));
    return tensors;
  }

  at::Tensor& altered(std::vector<at::Tensor>& inputs) const {
    return inputs[static_cast<size_t>(altered_)];
  }

  at::Tensor generate(const std::vector<at::Tensor>& inputs) const {
    return generator_(inputs, static_cast<size_t>(output_));
  }

  Criterion criterion_;
  Slot real_;
  std::vector<Slot> fake_;
  int64_t altered_;
  int64_t output_;
  NetworkCall generator_;
};

/// Mirrors or rotates the input, and undoes this for the output.
class Geometric : public InvarianceLoss {
 public:
  struct Params : InvarianceParams {
    bool detach_fake = false;

    void declare(Parameters& p) {
      InvarianceParams::declare(p).add("detach_fake", detach_fake,
                                       "no gradient by way of the second");
    }
  };

  Geometric(const Params& params, const Config& config, Ports& ports)
      : InvarianceLoss(params, config, ports), detaches_(params.detach_fake) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    const int64_t kind = draw(5);
    std::vector<at::Tensor> in = inputs(state);
    altered(in) = changed(altered(in), kind, /*is_back=*/false);
    std::optional<at::NoGradGuard> no_grad;
    if (detaches_) no_grad.emplace();
    at::Tensor made = generate(in);
    no_grad.reset();
    made = changed(made, kind, /*is_back=*/true);
    return criterion_(state.tensor(real_), made);
  }

 private:
  static at::Tensor changed(const at::Tensor& image, int64_t kind, bool is_back) {
    if (kind < 2) return at::flip(image, {2 + kind});
    const int64_t turns = kind - 1;
    return at::rot90(image, is_back ? 4 - turns : turns, {2, 3});
  }

  bool detaches_;
};

/// Uses another corner of the image, from image_patch, and compares the overlap of both corners.
class Translational : public InvarianceLoss {
 public:
  struct Params : InvarianceParams {
    int64_t patch_size = 1;
    int64_t overlap = 1;
    bool detach_fake = false;

    void declare(Parameters& p) {
      InvarianceParams::declare(p);
      p.require("patch_size", patch_size, "pixels of what comes out", at_least(1));
      p.require("overlap", overlap, "pixels that two corners share", at_least(1));
      p.add("detach_fake", detach_fake, "no gradient by way of the second");
    }
  };

  Translational(const Params& params, const Config& config, Ports& ports)
      : InvarianceLoss(params, config, ports),
        patch_(params.patch_size),
        overlap_(params.overlap),
        detaches_(params.detach_fake) {
    if (overlap_ >= patch_) {
      throw config.error(
          "overlap", fmt::format("expected less than patch_size, {}, found {}", patch_, overlap_));
    }
    const Port& fake = params.fake[static_cast<size_t>(altered_)];
    for (const char* corner : {"_top_right", "_bottom_left", "_bottom_right"}) {
      corners_.push_back(ports.reads(fake.with_suffix(corner)));
    }
  }

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    const auto corner = static_cast<size_t>(draw(3));
    std::vector<at::Tensor> in = inputs(state);
    altered(in) = state.tensor(corners_[corner]);
    std::optional<at::NoGradGuard> no_grad;
    if (detaches_) no_grad.emplace();
    const at::Tensor made = generate(in);
    no_grad.reset();
    const int64_t border = patch_ - overlap_;
    const at::Tensor& real = state.tensor(real_);
    if (made.dim() != 4 || made.size(2) < patch_ || made.size(3) < patch_) {
      throw Error(fmt::format("expected images of patch_size, {}, found {}", patch_,
                              describe_tensor(made)));
    }
    const at::Tensor shared = made.narrow(2, corner == 0 ? border : 0, overlap_)
                                  .narrow(3, corner == 1 ? border : 0, overlap_);
    return criterion_(shared, real.narrow(2, border, overlap_).narrow(3, border, overlap_));
  }

 private:
  int64_t patch_;
  int64_t overlap_;
  bool detaches_;
  std::vector<Slot> corners_;
};

/// Downsamples the output and feeds it in again, several times.
class Recursive : public InvarianceLoss {
 public:
  struct Params : InvarianceParams {
    int64_t recursive_depth = 1;
    double downsample_factor = 1;

    void declare(Parameters& p) {
      InvarianceParams::declare(p);
      p.require("recursive_depth", recursive_depth, "how many times", at_least(1));
      p.require("downsample_factor", downsample_factor, "1 / scale", above(0));
    }
  };

  Recursive(const Params& params, const Config& config, Ports& ports)
      : InvarianceLoss(params, config, ports),
        depth_(params.recursive_depth),
        factor_(params.downsample_factor) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    const at::Tensor& real = state.tensor(real_);
    std::vector<at::Tensor> in = inputs(state);
    at::Tensor made = real;
    for (int64_t i = 0; i < depth_; ++i) {
      const auto length = [&](int64_t of) {
        return static_cast<int64_t>(static_cast<double>(of) * factor_);
      };
      altered(in) = at::upsample_nearest2d(made, {length(made.size(2)), length(made.size(3))},
                                           factor_, factor_);
      made = generate(in);
    }
    return criterion_(real, made);
  }

 private:
  int64_t depth_;
  double factor_;
};

STEPOP_REGISTER_LOSS(geometric, Geometric,
                     {"A generator makes the same of a mirrored or turned image."});
STEPOP_REGISTER_LOSS(translational, Translational,
                     {"A generator makes the same of two corners where they overlap."});
STEPOP_REGISTER_LOSS(recursive, Recursive,
                     {"A generator makes the same of what it made, made smaller."});

}  // namespace
}  // namespace stepop::extensible
