// The injector that samples from a diffusion.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
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

diffusion::DiffusionOptions read_spaced_options(const Config& params) {
  diffusion::DiffusionOptions options = diffusion::read_options(params);
  diffusion::read_spacing(params, params.get("use_ddim", false), options);
  return options;
}

/// Whether sampling uses the network's averaged weights; throws UsageError where it cannot.
bool read_use_ema(const Config& params, const Context& context) {
  if (!params.get("use_ema", false)) return false;
  if (context.config.get("eval_weights", "model") != "ema") {
    throw params.error("use_ema",
                       "the averages are those that evaluations use: add ema: {decay: 0.999} and "
                       "eval_weights: ema to the config");
  }
  const auto network = params.get<std::string>("generator");
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
  return true;
}

/// Samples from noise, with DDPM or DDIM.
class GaussianDiffusionInferenceInjector : public Injector {
 public:
  GaussianDiffusionInferenceInjector(const Config& params, Ports& ports)
      : out_(ports.writes(params, "out")),
        denoiser_(params, ports),
        diffusion_(read_spaced_options(params), ports.context().device),
        networks_(ports.context().networks),
        device_(ports.context().device),
        use_ema_(read_use_ema(params, ports.context())),
        undoes_n1_to_1_(params.get("undo_n1_to_1", false)),
        rows_(params.has("output_batch_size") ? params.get_at_least("output_batch_size", 1) : 0),
        factor_(params.get_at_least("output_scale_factor", 1, 1)),
        multiple_(params.get_at_least("multiple_requirement", 1, 4096)),
        noise_(params.get("noise_type", "random")),
        seed_(mix_seed({ports.context().seed, seed_of(params.path())})) {
    sampling_.use_ddim = params.get("use_ddim", false);
    sampling_.eta = params.get("eta", 0.0);
    if (!(sampling_.eta >= 0 && sampling_.eta <= 1)) {
      throw params.error("eta", "expected a number from 0 to 1");
    }
    if (sampling_.eta > 0 && !sampling_.use_ddim) {
      throw params.error("eta", "is of DDIM: add use_ddim: true");
    }
    if (noise_ != "random" && noise_ != "zero" && noise_ != "fixed") {
      throw params.error("noise_type",
                         fmt::format("expected random, zero or fixed, found \"{}\"", noise_));
    }
    read_shape(params, ports);
  }

  void run(StepState& state, const Iteration&) override {
    const WithoutGradient without(denoiser_.network());
    at::Tensor made;
    if (use_ema_) {
      const AveragesGuard averages = networks_.evaluation_weights();
      made = sample(state);
    } else {
      made = sample(state);
    }
    state.set(out_, undoes_n1_to_1_ ? (made + 1) / 2 : made);
  }

 private:
  void read_shape(const Config& params, Ports& ports) {
    if (params.has("shape")) {
      shape_ = params.get<std::vector<int64_t>>("shape");
      const bool is_right = shape_.size() >= 2 && std::all_of(shape_.begin(), shape_.end(),
                                                              [](int64_t n) { return n > 0; });
      if (!is_right) throw params.error("shape", "expected that of one sample, such as [1, 8, 8]");
    }
    like_ = ports.reads_optional(params, "like");
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
      shape[2] *= factor_;
      shape[3] *= factor_;
    } else {
      const int64_t factor = shaping_ == "spectrogram" ? factor_ : 1024;
      const int64_t length = state.tensor(shaped_by_).size(-1) * factor;
      shape = {rows, 1, (length + multiple_ - 1) / multiple_ * multiple_};
    }
    shape.front() = rows;
    return shape;
  }

  at::Tensor sample(const StepState& state) const {
    const std::vector<int64_t> shape = shape_of(state);
    return diffusion::sample(diffusion_, denoiser_.model(state, shape.front()), noise_of(shape),
                             sampling_);
  }

  at::Tensor noise_of(const std::vector<int64_t>& shape) const {
    const auto options = at::TensorOptions(at::kFloat);
    if (noise_ == "zero") return at::zeros(shape, options.device(device_));
    if (noise_ == "random") return at::randn(shape, options.device(device_));
    // The injector's own seed gives the same noise in each iteration, also after a restart.
    return at::randn(shape, at::detail::createCPUGenerator(seed_), options).to(device_);
  }

  Slot out_;
  Slot like_;
  Slot shaped_by_;              ///< An input that gives the size of a sample.
  std::string shaping_;         ///< The name of this input.
  std::vector<int64_t> shape_;  ///< The shape of one sample, [C, ...]; empty: from an input.
  Denoiser denoiser_;
  diffusion::GaussianDiffusion diffusion_;
  diffusion::SamplingOptions sampling_;
  Networks& networks_;
  at::Device device_;
  bool use_ema_;
  bool undoes_n1_to_1_;
  int64_t rows_;  ///< 0: the number that the inputs have.
  int64_t factor_;
  int64_t multiple_;
  std::string noise_;
  uint64_t seed_;
};

STEPOP_REGISTER_INJECTOR(
    gaussian_diffusion_inference, GaussianDiffusionInferenceInjector,
    {"Samples from noise, by DDPM or DDIM.",
     {{"generator", "", "the network, which runs in evaluation mode and without a graph"},
      {"model_input_keys", "none", "input -> key of the state, {y: class}"},
      {"out", "", "the samples, [B, C, ...]"},
      {"output_batch_size", "the batch's", "how many samples, those of the first examples"},
      {"shape", "none", "of one sample, [1, 8, 8]"},
      {"like", "none", "a key whose shape the samples have"},
      {"output_scale_factor", "1", "without these: how much larger than the input low_res"},
      {"beta_schedule", "", "that of the training"},
      {"diffusion_args", "", "those of the training"},
      {"respaced_timestep_spacing", "all",
       "how many timesteps are taken: 50, \"10,15,20\" in sections, \"ddim50\""},
      {"use_ddim", "false", "DDIM, with one stride"},
      {"eta", "0", "of DDIM: 0 adds no noise, 1 as much as DDPM"},
      {"use_ema", "false", "with the averages, where evaluations have them (eval_weights: ema)"},
      {"noise_type", "random", "what samples begin with: random, fixed (always the same) or zero"},
      {"undo_n1_to_1", "false", "samples in [0, 1]"},
      {"multiple_requirement", "4096", "of the length of waves that are made of spectrograms"}}});

}  // namespace
}  // namespace stepop::extensible
