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

/// The base of these losses: `generator`, its inputs `fake`, of which one is changed, and `real`,
/// the generator's output for the unchanged inputs.
class InvarianceLoss : public Loss {
 public:
  InvarianceLoss(const Config& params, Ports& ports)
      : criterion_(params),
        real_(ports.reads(params, "real")),
        fake_(ports.reads_all(params, "fake")),
        altered_(params.get_at_least("input_alteration_index", 0, 0)),
        output_(params.get_at_least("generator_output_index", 0, 0)),
        generator_(params, "generator", ports.module(params, "generator"), fake_.size()) {
    if (altered_ >= static_cast<int64_t>(fake_.size())) {
      throw params.error("input_alteration_index",
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
  Geometric(const Config& params, Ports& ports)
      : InvarianceLoss(params, ports), detaches_(params.get("detach_fake", false)) {}

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
  Translational(const Config& params, Ports& ports)
      : InvarianceLoss(params, ports),
        patch_(params.get_at_least("patch_size", 1)),
        overlap_(params.get_at_least("overlap", 1)),
        detaches_(params.get("detach_fake", false)) {
    if (overlap_ >= patch_) {
      throw params.error(
          "overlap", fmt::format("expected less than patch_size, {}, found {}", patch_, overlap_));
    }
    const Value* fake = params.peek("fake");
    const auto index = static_cast<size_t>(altered_);
    const std::string name = fake->is_list() ? fake->as_list()[index].as_text() : fake->as_text();
    for (const char* corner : {"_top_right", "_bottom_left", "_bottom_right"}) {
      corners_.push_back(ports.reads_key(params, "fake", name + corner));
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
  Recursive(const Config& params, Ports& ports)
      : InvarianceLoss(params, ports),
        depth_(params.get_at_least("recursive_depth", 1)),
        factor_(params.get<double>("downsample_factor")) {
    if (!(factor_ > 0)) throw params.error("downsample_factor", "expected more than 0");
  }

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

std::vector<Parameter> with_common(std::vector<Parameter> own) {
  std::vector<Parameter> all = {
      {"generator", "", "the network"},
      {"criterion", "", "l1, l2, cosine or a loss function"},
      {"real", "", "what the network made"},
      {"fake", "", "its inputs"},
      {"input_alteration_index", "0", "which of them changes"},
      {"generator_output_index", "0", "which of its outputs is compared"}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

STEPOP_REGISTER_LOSS(geometric, Geometric,
                     {"A generator makes the same of a mirrored or turned image.",
                      with_common({{"detach_fake", "false", "no gradient by way of the second"}})});
STEPOP_REGISTER_LOSS(translational, Translational,
                     {"A generator makes the same of two corners where they overlap.",
                      with_common({{"patch_size", "", "pixels of what comes out"},
                                   {"overlap", "", "pixels that two corners share"},
                                   {"detach_fake", "false", "no gradient by way of the second"}})});
STEPOP_REGISTER_LOSS(recursive, Recursive,
                     {"A generator makes the same of what it made, made smaller.",
                      with_common({{"recursive_depth", "", "how many times"},
                                   {"downsample_factor", "", "1 / scale"}})});

}  // namespace
}  // namespace stepop::extensible
