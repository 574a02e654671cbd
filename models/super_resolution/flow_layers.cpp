#include "models/super_resolution/flow_layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/log.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/slogdet.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/activation.h>

#include <cmath>
#include <numbers>

namespace stepop::srflow {
namespace {

namespace nn = torch::nn;

constexpr double kDeviationOfWeights = 0.05;
constexpr double kLogScaleFactor = 3;  // how fast ZeroConvolution learns its scale, as in Glow
const double kLog2Pi = std::log(2 * std::numbers::pi);

double places(const at::Tensor& x) { return static_cast<double>(x.size(2) * x.size(3)); }
at::Tensor sum_of_each(const at::Tensor& x) { return x.sum({1, 2, 3}); }

/// The channels 0, 2, 4... and 1, 3, 5...
std::pair<at::Tensor, at::Tensor> even_and_odd(const at::Tensor& x) {
  return {x.slice(1, 0, c10::nullopt, 2), x.slice(1, 1, c10::nullopt, 2)};
}

/// A convolution without a bias, and ActNorm behind it.
class NormedConvolution : public nn::Module {
 public:
  NormedConvolution(int64_t in, int64_t out, int64_t kernel)
      : weight_(register_parameter("weight",
                                   at::randn({out, in, kernel, kernel}) * kDeviationOfWeights)),
        norm_(register_module("actnorm", std::make_shared<ActNorm>(out))),
        padding_(kernel / 2) {}
  at::Tensor forward(const at::Tensor& x) {
    return norm_->forward(at::conv2d(x, weight_, {}, 1, padding_));
  }

 private:
  at::Tensor weight_;
  std::shared_ptr<ActNorm> norm_;
  int64_t padding_;
};

nn::Sequential coupling_network(int64_t in, int64_t hidden, int64_t out) {
  nn::Sequential layers;
  layers->push_back(std::make_shared<NormedConvolution>(in, hidden, 3));
  layers->push_back(nn::ReLU());
  layers->push_back(std::make_shared<NormedConvolution>(hidden, hidden, 1));
  layers->push_back(nn::ReLU());
  layers->push_back(std::make_shared<ZeroConvolution>(hidden, out));
  return layers;
}

}  // namespace

at::Tensor standard_normal_logp(const at::Tensor& x) {
  return sum_of_each((x.square() + kLog2Pi) * -0.5);
}

ActNorm::ActNorm(int64_t channels)
    : bias_(register_parameter("bias", at::zeros({1, channels, 1, 1}))),
      logs_(register_parameter("logs", at::zeros({1, channels, 1, 1}))) {}

at::Tensor ActNorm::forward(const at::Tensor& x) const { return (x + bias_) * at::exp(logs_); }

Flowed ActNorm::forward(const Flowed& in) const {
  return {forward(in.x), in.logdet + logdet_of(in.x)};
}

Flowed ActNorm::reversed(const Flowed& in) const {
  return {in.x * at::exp(-logs_) - bias_, in.logdet - logdet_of(in.x)};
}

at::Tensor ActNorm::logdet_of(const at::Tensor& x) const { return logs_.sum() * places(x); }

InvertibleConvolution::InvertibleConvolution(int64_t channels)
    : weight_(register_parameter("weight",
                                 std::get<0>(at::linalg_qr(at::randn({channels, channels}))))) {}

Flowed InvertibleConvolution::forward(const Flowed& in) const {
  const at::Tensor kernel = weight_.unsqueeze(-1).unsqueeze(-1);
  return {at::conv2d(in.x, kernel), in.logdet + logdet_of(in.x)};
}

Flowed InvertibleConvolution::reversed(const Flowed& in) const {
  const at::Tensor inverse = at::linalg_inv(weight_.to(at::kDouble)).to(weight_.scalar_type());
  return {at::conv2d(in.x, inverse.unsqueeze(-1).unsqueeze(-1)), in.logdet - logdet_of(in.x)};
}

at::Tensor InvertibleConvolution::logdet_of(const at::Tensor& x) const {
  return std::get<1>(at::slogdet(weight_)) * places(x);
}

ZeroConvolution::ZeroConvolution(int64_t in, int64_t out)
    : weight_(register_parameter("weight", at::zeros({out, in, 3, 3}))),
      bias_(register_parameter("bias", at::zeros({out}))),
      logs_(register_parameter("logs", at::zeros({out, 1, 1}))) {}

at::Tensor ZeroConvolution::forward(const at::Tensor& x) {
  return at::conv2d(x, weight_, bias_, 1, 1) * at::exp(logs_ * kLogScaleFactor);
}

Coupling::Coupling(int64_t channels, const CouplingSizes& sizes)
    : first_(channels / 2), eps_(sizes.eps) {
  by_half_ = register_module(
      "fAffine", coupling_network(first_ + sizes.features, sizes.hidden, 2 * (channels - first_)));
  by_features_ =
      register_module("fFeatures", coupling_network(sizes.features, sizes.hidden, 2 * channels));
}

Flowed Coupling::forward(const Flowed& in, const at::Tensor& features) {
  const auto [scale, shift] = scale_and_shift(by_features_, features);
  const at::Tensor x = (in.x + shift) * scale;
  const at::Tensor first = x.narrow(1, 0, first_);
  const auto [own_scale, own_shift] = scale_and_shift(by_half_, at::cat({first, features}, 1));
  const at::Tensor second = x.narrow(1, first_, x.size(1) - first_);
  return {
      at::cat({first, (second + own_shift) * own_scale}, 1),
      in.logdet + sum_of_each(at::log(scale)) + sum_of_each(at::log(own_scale)),
  };
}

Flowed Coupling::reversed(const Flowed& in, const at::Tensor& features) {
  const at::Tensor first = in.x.narrow(1, 0, first_);
  const auto [own_scale, own_shift] = scale_and_shift(by_half_, at::cat({first, features}, 1));
  const at::Tensor second = in.x.narrow(1, first_, in.x.size(1) - first_) / own_scale - own_shift;
  const auto [scale, shift] = scale_and_shift(by_features_, features);
  return {
      at::cat({first, second}, 1) / scale - shift,
      in.logdet - sum_of_each(at::log(own_scale)) - sum_of_each(at::log(scale)),
  };
}

std::pair<at::Tensor, at::Tensor> Coupling::scale_and_shift(nn::Sequential& network,
                                                            const at::Tensor& seen) const {
  const auto [shift, scale] = even_and_odd(network->forward(seen));
  return {at::sigmoid(scale + 2) + eps_, shift};
}

FlowStep::FlowStep(int64_t channels, const CouplingSizes* coupling)
    : norm_(register_module("actnorm", std::make_shared<ActNorm>(channels))),
      convolution_(register_module("invconv", std::make_shared<InvertibleConvolution>(channels))) {
  if (coupling != nullptr) {
    coupling_ = register_module("affine", std::make_shared<Coupling>(channels, *coupling));
  }
}

Flowed FlowStep::forward(const at::Tensor& x, const at::Tensor& logdet,
                         const at::Tensor& features) {
  const Flowed moved = convolution_->forward(norm_->forward(Flowed{x, logdet}));
  return coupling_ ? coupling_->forward(moved, features) : moved;
}

Flowed FlowStep::reversed(const Flowed& in, const at::Tensor& features) {
  const Flowed moved = coupling_ ? coupling_->reversed(in, features) : in;
  return norm_->reversed(convolution_->reversed(moved));
}

Split::Split(int64_t channels, const SplitSizes& sizes)
    : consumed_(std::lrint(static_cast<double>(channels) * sizes.ratio)),
      passed_(channels - consumed_),
      sizes_(sizes),
      convolution_(
          register_module("conv", std::make_shared<ZeroConvolution>(passed_, 2 * consumed_))) {}

Split::Parts Split::forward(const Flowed& in) const {
  const at::Tensor rest = in.x.narrow(1, 0, passed_);
  const at::Tensor leaves = in.x.narrow(1, passed_, consumed_);
  const auto [mean, logs] = prior(rest);
  return {{rest, in.logdet + logdet_of(leaves, mean, logs)},
          (leaves - mean) / (at::exp(logs) + sizes_.logs_eps)};
}

Flowed Split::reversed(const Flowed& in, const at::Tensor& latent, double heat) const {
  const auto [mean, logs] = prior(in.x);
  at::Tensor given = latent;
  if (!given.defined()) {
    const at::Tensor deviation = at::full_like(logs, heat == 0 ? 1 : heat);
    given = mean + at::exp(logs) * at::normal(at::zeros_like(mean), deviation);
  }
  const at::Tensor leaves = mean + (at::exp(logs) + sizes_.logs_eps) * given;
  return {at::cat({in.x, leaves}, 1), in.logdet - logdet_of(leaves, mean, logs)};
}

std::pair<at::Tensor, at::Tensor> Split::prior(const at::Tensor& rest) const {
  return even_and_odd(convolution_->forward(rest));
}

at::Tensor Split::logdet_of(const at::Tensor& x, const at::Tensor& mean,
                            const at::Tensor& logs) const {
  const at::Tensor each = logs * 2 + (x - mean).square() / at::exp(logs * 2) + kLog2Pi;
  return sum_of_each(each * -0.5) * sizes_.loss_weight;
}

}  // namespace stepop::srflow
