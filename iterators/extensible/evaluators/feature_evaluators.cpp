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

/// Computes features of pictures.
class FeatureNetwork {
 public:
  FeatureNetwork(const Config& params, const c10::Device& device)
      : range_(params), network_(build_network(params)), device_(device) {
    network_->to(device);
    network_->eval();
    if (params.has("size")) {
      size_ = params.peek("size")->is_list()
                  ? params.get<std::vector<int64_t>>("size")
                  : std::vector<int64_t>(2, params.get_at_least("size", 1));
      if (size_.size() != 2 || size_[0] < 1 || size_[1] < 1) {
        throw params.error("size", "expected a number of pixels or [H, W]");
      }
    }
    mean_ = channels_at(params, "mean");
    deviation_ = channels_at(params, "std");
    if (deviation_.defined() && deviation_.eq(0).any().item<bool>()) {
      throw params.error("std", "expected numbers other than 0");
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
  at::Tensor channels_at(const Config& params, const char* key) const {
    if (!params.has(key)) return {};
    const auto values = params.get<std::vector<double>>(key);
    if (values.empty()) throw params.error(key, "expected a number for each channel");
    return at::tensor(values, at::kFloat).view({1, -1, 1, 1}).to(device_);
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
  std::vector<int64_t> size_;  ///< Empty: pictures keep their size.
  at::Tensor mean_, deviation_;
};

std::string real_of(const std::string& name) { return name + "/real"; }
std::string fake_of(const std::string& name) { return name + "/fake"; }

/// Writes the features of both sets; their distance is computed over the whole split.
class FeatureEvaluator : public Evaluator {
 public:
  FeatureEvaluator(const Config& params, Ports& ports)
      : real_(ports.reads(params, "real")),
        fake_(ports.reads(params, "fake")),
        network_(params, ports.context().device) {}

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
  Kid(const Config& params, Ports& ports) {
    metrics::read_kernel_options(params);  // throws now for errors of over_split
    if (params.has("features_of")) {
      check_source(params, ports.context().config);
    } else {
      own_.emplace(params, ports);
    }
  }

  void evaluate(const StepState& state, const Iteration& iteration, const std::string& name,
                EvalOutputs& made) override {
    if (own_) own_->evaluate(state, iteration, name, made);
  }

  static Scalars over_split(const CallbackArguments& arguments) {
    const std::string source = arguments.params.get("features_of", arguments.name);
    return metrics::kernel_distance_of_outputs(arguments, real_of(source), fake_of(source),
                                               metrics::read_kernel_options(arguments.params));
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

/// `given`: the default that is shown for `real`, `fake` and `features`; empty: they are required.
std::vector<Parameter> feature_parameters(const char* given, std::vector<Parameter> more) {
  std::vector<Parameter> all = {
      {"real", given, "the true pictures"},
      {"fake", given, "those that are compared with them"},
      {"features", given, "TorchScript file of a network, pictures in [0, 1] to [B, D]", true},
      {"range", "[-1, 1]", "the values of black and white"},
      {"size", "none", "pixels to which pictures are resized for it, or [H, W]"},
      {"mean", "none", "for each channel, subtracted from pictures in [0, 1]"},
      {"std", "none", "by which they are divided then"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

STEPOP_REGISTER_EVALUATOR(fid, Fid,
                          {"The Frechet distance (FID) of all pictures from the true ones.",
                           feature_parameters("", {})});
STEPOP_REGISTER_EVALUATOR(
    kid, Kid,
    {"The kernel distance (KID) of all pictures from the true ones, unbiased, of degree 3.",
     feature_parameters("that of features_of",
                        {{"features_of", "none", "another evaluator, whose features these are"},
                         {"subsets", "100", "over which its mean and deviation are"},
                         {"subset_size", "1000, or all", "examples of each"},
                         {"seed", "0", "of the choice"}})});

}  // namespace
}  // namespace stepop::extensible
