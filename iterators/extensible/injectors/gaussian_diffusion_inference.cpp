// The injector that samples from a diffusion.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "iterators/diffusion/gaussian_diffusion.h"
#include "iterators/diffusion/options.h"
#include "iterators/diffusion/sampling.h"
#include "iterators/extensible/injectors/denoiser.h"
#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/without_gradient.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/averages.h"
#include "runtime/train/networks/networks.h"

namespace stepop::extensible {
namespace {

/// Throws UsageError where sampling cannot use the network's averaged weights.
void check_use_ema(const std::string& network, const Config& params, const Context& context) {
  if (context.config.get("eval_weights", "model") != "ema") {
    throw params.error("use_ema",
                       "the averages are those that evaluations use: add ema: {decay: 0.999} and "
                       "eval_weights: ema to the config");
  }
  if (context.config.has("ema/networks")) {
    const auto averaged = context.config.get<std::vector<std::string>>("ema/networks");
    if (std::find(averaged.begin(), averaged.end(), network) == averaged.end()) {
      throw params.error("use_ema", fmt::format("ema/networks does not name \"{}\"", network));
    }
  }
  // The averages replace the weights, which the graph of the step's losses still needs.
  const std::string& path = params.path();
  const size_t end = path.find("/injectors/");
  const bool is_trained_beside =
      end != std::string::npos && context.config.has(path.substr(0, end) + "/losses");
  if (is_trained_beside && !params.get("eval", false)) {
    throw params.error("use_ema",
                       "the step trains weights beside it: say eval: true, or put the injector "
                       "into a step of its own, without losses");
  }
}

/// Samples from noise, with DDPM or DDIM.
class GaussianDiffusionInferenceInjector : public Injector {
 public:
  struct Params {
    Denoiser::Params denoiser;
    Port out;
    std::optional<int64_t> rows;
    std::optional<std::vector<int64_t>> shape;
    Port like;
    int64_t factor = 1;
    diffusion::SamplingOptions sampling;
    bool use_ema = false;
    std::string noise = "random";
    bool undoes_n1_to_1 = false;
    int64_t multiple = 4096;

    void declare(Parameters& p) {
      denoiser.declare(p, "the network, which runs in evaluation mode and without a graph",
                       ", as in the training");
      p.require("out", out, "the samples, [B, C, ...]");
      p.add("output_batch_size", rows,
            "how many samples, those of the first examples; by default the batch's", at_least(1));
      p.add("shape", shape, "of one sample, [1, 8, 8]");
      p.add("like", like, "a key whose shape the samples have");
      p.add("output_scale_factor", factor, "without these: how much larger than the input low_res",
            at_least(1));
      p.add("use_ddim", sampling.use_ddim, "DDIM, with one stride");
      const Config* config =
          p.describe({"respaced_timestep_spacing",
                      "all",
                      "how many timesteps are taken: 50, \"10,15,20\" in sections, \"ddim50\"",
                      false,
                      {.kind = "int | text"}});
      if (config != nullptr) {
        diffusion::read_spacing(*config, sampling.use_ddim, denoiser.options);
      }
      p.add("eta", sampling.eta, "of DDIM: 0 adds no noise, 1 as much as DDPM",
            at_least(0).at_most(1));
      p.add("use_ema", use_ema,
            "with the averages, where evaluations have them (eval_weights: ema)");
      p.add("noise_type", noise, "what samples begin with: random, fixed (always the same) or zero",
            one_of({"random", "zero", "fixed"}));
      p.add("undo_n1_to_1", undoes_n1_to_1, "samples in [0, 1]");
      p.add("multiple_requirement", multiple,
            "of the length of waves that are made of spectrograms", at_least(1));
    }
  };

  GaussianDiffusionInferenceInjector(const Params& params, const Config& config, Ports& ports)
      : p_(params),
        out_(ports.writes(params.out)),
        denoiser_(params.denoiser, ports),
        diffusion_(params.denoiser.options, ports.context().device),
        networks_(ports.context().networks),
        device_(ports.context().device),
        rows_(params.rows.value_or(0)),
        seed_(mix_seed({ports.context().seed, seed_of(config.path())})) {
    if (p_.use_ema) check_use_ema(params.denoiser.network.name, config, ports.context());
    if (p_.sampling.eta > 0 && !p_.sampling.use_ddim) {
      throw config.error("eta", "is of DDIM: add use_ddim: true");
    }
    read_shape(config, ports);
  }

  void run(StepState& state, const Iteration&) override {
    const WithoutGradient without(denoiser_.network());
    at::Tensor made;
    if (p_.use_ema) {
      const AveragesGuard averages = networks_.evaluation_weights();
      made = sample(state);
    } else {
      made = sample(state);
    }
    state.set(out_, p_.undoes_n1_to_1 ? (made + 1) / 2 : made);
  }

 private:
  void read_shape(const Config& params, Ports& ports) {
    if (p_.shape) {
      shape_ = *p_.shape;
      const bool is_right = shape_.size() >= 2 && std::all_of(shape_.begin(), shape_.end(),
                                                              [](int64_t n) { return n > 0; });
      if (!is_right) throw params.error("shape", "expected that of one sample, such as [1, 8, 8]");
    }
    like_ = ports.reads(p_.like);
    if (!shape_.empty() && like_) throw params.error("like", "give shape or like, not both");
    if (!shape_.empty() || like_) {
      if (rows_ == 0 && !like_ && denoiser_.inputs().empty()) {
        throw params.error("output_batch_size", "missing: nothing else says how many samples");
      }
      return;
    }
    for (const char* name : {"low_res", "spectrogram", "discrete_spectrogram"}) {
      shaped_by_ = denoiser_.input(name);
      if (!shaped_by_) continue;
      shaping_ = name;
      return;
    }
    throw params.error(
        "shape",
        "missing: nothing says how large a sample is; give shape: [1, 8, 8], or like: hq, a key "
        "with tensors of its shape, or the input low_res with output_scale_factor");
  }

  /// [B, C, ...]
  std::vector<int64_t> shape_of(const StepState& state) const {
    std::vector<int64_t> shape;
    int64_t rows = rows_;
    const auto limit = [&](int64_t there) { rows = rows == 0 ? there : std::min(rows, there); };
    for (const Slot slot : denoiser_.inputs()) {
      if (state.tensor(slot).dim() > 0) limit(state.tensor(slot).size(0));
    }
    if (like_) limit(state.tensor(like_).size(0));
    if (like_) {
      shape = state.tensor(like_).sizes().vec();
    } else if (!shape_.empty()) {
      shape = shape_;
      shape.insert(shape.begin(), rows);
    } else if (shaping_ == "low_res") {
      shape = state.tensor(shaped_by_).sizes().vec();
      if (shape.size() != 4) {
        throw Error(fmt::format("low_res: expected images [B, C, H, W], found {}",
                                describe_tensor(state.tensor(shaped_by_))));
      }
      shape[2] *= p_.factor;
      shape[3] *= p_.factor;
    } else {
      const int64_t factor = shaping_ == "spectrogram" ? p_.factor : 1024;
      const int64_t length = state.tensor(shaped_by_).size(-1) * factor;
      shape = {rows, 1, (length + p_.multiple - 1) / p_.multiple * p_.multiple};
    }
    shape.front() = rows;
    return shape;
  }

  at::Tensor sample(const StepState& state) const {
    const std::vector<int64_t> shape = shape_of(state);
    return diffusion::sample(diffusion_, denoiser_.model(state, shape.front()), noise_of(shape),
                             p_.sampling);
  }

  at::Tensor noise_of(const std::vector<int64_t>& shape) const {
    const auto options = at::TensorOptions(at::kFloat);
    if (p_.noise == "zero") return at::zeros(shape, options.device(device_));
    if (p_.noise == "random") return at::randn(shape, options.device(device_));
    // The injector's own seed gives the same noise in each iteration, also after a restart.
    return at::randn(shape, at::detail::createCPUGenerator(seed_), options).to(device_);
  }

  Params p_;
  Slot out_;
  Slot like_;
  Slot shaped_by_;              ///< An input that gives the size of a sample.
  std::string shaping_;         ///< The name of this input.
  std::vector<int64_t> shape_;  ///< The shape of one sample, [C, ...]; empty: from an input.
  Denoiser denoiser_;
  diffusion::GaussianDiffusion diffusion_;
  Networks& networks_;
  at::Device device_;
  int64_t rows_;  ///< 0: the number that the inputs have.
  uint64_t seed_;
};

STEPOP_REGISTER_INJECTOR(gaussian_diffusion_inference, GaussianDiffusionInferenceInjector,
                         {"Samples from noise, by DDPM or DDIM."});

}  // namespace
}  // namespace stepop::extensible
