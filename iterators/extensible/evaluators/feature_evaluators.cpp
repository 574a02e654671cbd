// FID and KID, with the features of a network from Python.
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iterators/extensible/evaluators/picture_range.h"
#include "iterators/extensible/step/evaluator.h"
#include "iterators/extensible/step/gate.h"
#include "iterators/extensible/step/image_size.h"
#include "iterators/extensible/step/inner.h"
#include "iterators/metrics/feature_callbacks.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

/// `features: inception.pt`, or any network: `{class: TorchScript, path: inception.pt}`.
std::shared_ptr<Network> build_network(const Config& params) {
  if (!params.has("features")) {
    throw params.error("features",
                       "missing: a TorchScript file of a network that makes features [B, D] of "
                       "pictures; iterators/extensible/README.md has the line that makes it");
  }
  const Value& given = *params.peek("features");
  if (given.is_map()) {
    auto network = std::dynamic_pointer_cast<Network>(models().build(params, "features"));
    if (network) return network;
    throw params.error("features", "expected a network with one input and one output");
  }
  Value path(get_file(params, "features"));
  path.set_origin(given.origin());
  Value::Map component{{"class", Value("TorchScript")}, {"path", std::move(path)}};
  const Config config =
      config_at(params.path(), Value(Value::Map{{"features", Value(std::move(component))}}));
  return std::dynamic_pointer_cast<Network>(models().build(config, "features"));
}

/// What pictures are compared, and by which features.
struct FeatureParams {
  Port real;
  Port fake;
  std::shared_ptr<Network> network;
  PictureRange range;
  std::vector<int64_t> size;  ///< Empty: pictures keep their size.
  std::optional<std::vector<double>> mean, deviation;

  /// `usual`: the shown default of the first three; empty: they are required.
  void declare(Parameters& p, const std::string& usual = "") {
    const auto port = [&](const char* key, Port& value, const char* about) {
      const Config* config = p.describe({key, usual, about, false, {.kind = "text"}});
      if (config != nullptr) value = ParameterOf<Port>::read(*config, key, {});
    };
    port("real", real, "the true pictures");
    port("fake", fake, "those that are compared with them");
    p.add("range", range, "the values of black and white");
    const Config* config =
        p.describe({"features",
                    usual,
                    "TorchScript file of a network, pictures in [0, 1] to [B, D]",
                    true,
                    {.kind = "path | component model"}});
    if (config != nullptr) network = build_network(*config);
    add_image_size(p, size, "pixels to which pictures are resized for it, or [H, W]");
    p.add("mean", mean, "for each channel, subtracted from pictures in [0, 1]");
    p.add("std", deviation, "by which they are divided then");
  }
};

/// Computes features of pictures.
class FeatureNetwork {
 public:
  FeatureNetwork(const FeatureParams& params, const Config& config, const c10::Device& device)
      : range_(params.range), network_(params.network), device_(device), size_(params.size) {
    network_->to(device);
    network_->eval();
    mean_ = of_channels(params.mean, config, "mean");
    deviation_ = of_channels(params.deviation, config, "std");
    if (deviation_.defined() && deviation_.eq(0).any().item<bool>()) {
      throw config.error("std", "expected numbers other than 0");
    }
  }

  void check(const at::Tensor& real) const { range_.check(real); }

  /// The features [B, D] of pictures [B, C, H, W].
  at::Tensor operator()(const at::Tensor& pictures) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    at::Tensor x = range_.to_unit(pictures).clamp(0, 1).to(at::kFloat);
    if (!size_.empty()) x = at::_upsample_bilinear2d_aa(x, size_, /*align_corners=*/false);
    if (mean_.defined()) x = x.sub(fitting(mean_, x, "mean"));
    if (deviation_.defined()) x = x.div(fitting(deviation_, x, "std"));
    const at::Tensor features = network_->forward(x);
    if (features.dim() < 2 || features.size(0) != pictures.size(0)) {
      throw Error(fmt::format("expected features [B, D] of {}, the network made {}",
                              describe_tensor(x), describe_tensor(features)));
    }
    return features.flatten(1);
  }

 private:
  at::Tensor of_channels(const std::optional<std::vector<double>>& values, const Config& config,
                         const char* key) const {
    if (!values) return {};
    if (values->empty()) throw config.error(key, "expected a number for each channel");
    return at::tensor(*values, at::kFloat).view({1, -1, 1, 1}).to(device_);
  }

  static const at::Tensor& fitting(const at::Tensor& values, const at::Tensor& pictures,
                                   const char* key) {
    if (values.size(1) == 1 || values.size(1) == pictures.size(1)) return values;
    throw Error(fmt::format("{} has {} numbers, and pictures {} channels", key, values.size(1),
                            pictures.size(1)));
  }

  PictureRange range_;
  std::shared_ptr<Network> network_;
  c10::Device device_;
  std::vector<int64_t> size_;
  at::Tensor mean_, deviation_;
};

std::string real_of(const std::string& name) { return name + "/real"; }
std::string fake_of(const std::string& name) { return name + "/fake"; }

/// Writes the features of both sets; their distance is computed over the whole split.
class FeatureEvaluator : public Evaluator {
 public:
  using Params = FeatureParams;
  FeatureEvaluator(const Params& params, const Config& config, Ports& ports)
      : real_(ports.reads(params.real)),
        fake_(ports.reads(params.fake)),
        network_(params, config, ports.context().device) {}

  void evaluate(const StepState& state, const Iteration&, const std::string& name,
                EvalOutputs& made) override {
    network_.check(state.tensor(real_));
    made.outputs.set(real_of(name), network_(state.tensor(real_)));
    made.outputs.set(fake_of(name), network_(state.tensor(fake_)));
  }

 private:
  Slot real_, fake_;
  FeatureNetwork network_;
};

class Fid : public FeatureEvaluator {
 public:
  using FeatureEvaluator::FeatureEvaluator;

  static Scalars over_split(const CallbackArguments& arguments) {
    return metrics::frechet_of_outputs(arguments, real_of(arguments.name), fake_of(arguments.name));
  }
};

/// KID, with its own features or with the features that another evaluator writes.
class Kid : public Evaluator {
 public:
  /// What the metric of the whole split needs: no network.
  struct SplitParams {
    std::optional<std::string> features_of;
    metrics::KernelDistanceOptions kernel;

    void declare(Parameters& p) {
      p.add("features_of", features_of, "another evaluator, whose features these are");
      metrics::declare_kernel_options(p, kernel);
    }
  };

  struct Params : SplitParams {
    FeatureParams features;

    void declare(Parameters& p) {
      SplitParams::declare(p);
      if (!features_of) features.declare(p, "that of features_of");
    }
  };

  Kid(const Params& params, const Config& config, Ports& ports) {
    if (params.features_of) {
      check_source(config, ports.context().config);
    } else {
      own_.emplace(params.features, config, ports);
    }
  }

  void evaluate(const StepState& state, const Iteration& iteration, const std::string& name,
                EvalOutputs& made) override {
    if (own_) own_->evaluate(state, iteration, name, made);
  }

  static Scalars over_split(const CallbackArguments& arguments) {
    const auto params = read_parameters<SplitParams>(arguments.params);
    const std::string source = params.features_of.value_or(arguments.name);
    return metrics::kernel_distance_of_outputs(arguments, real_of(source), fake_of(source),
                                               params.kernel);
  }

 private:
  /// Checks that the other evaluator exists, writes features, and is on whenever this evaluator is.
  static void check_source(const Config& params, const Config& config) {
    const auto name = params.get<std::string>("features_of");
    const std::string place = "eval/evaluators/" + name;
    const Value* other = config.root().peek(place);
    const Value* type = other == nullptr ? nullptr : other->find("type");
    const bool has_features = type != nullptr && (*type == Value("fid") || *type == Value("kid")) &&
                              other->find("features_of") == nullptr;
    if (!has_features) {
      throw params.error(
          "features_of",
          fmt::format("expected the name of an evaluator of the type fid or kid that "
                      "has features of its own, found \"{}\"",
                      name));
    }
    for (const char* key : {"features", "real", "fake"}) {
      if (params.has(key)) {
        throw params.error(key, fmt::format("not with features_of: they are those of {}", name));
      }
    }
    const Gate own(params);
    const Gate its(config.root().at(place));
    if (own.after != its.after || own.before != its.before || own.every != its.every) {
      throw params.error("features_of",
                         fmt::format("{} is on at other times: give both the same after, before "
                                     "and every",
                                     name));
    }
  }

  std::optional<FeatureEvaluator> own_;
};

STEPOP_REGISTER_EVALUATOR(fid, Fid,
                          {"The Frechet distance (FID) of all pictures from the true ones."});
STEPOP_REGISTER_EVALUATOR(
    kid, Kid,
    {"The kernel distance (KID) of all pictures from the true ones, unbiased, of degree 3."});

}  // namespace
}  // namespace stepop::extensible
