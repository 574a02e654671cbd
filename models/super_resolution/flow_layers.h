#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace stepop::srflow {

/// Features [B, C, H, W] on their way through a flow, and the logarithm of the determinant of what
/// was done to each example so far, [B].
struct Flowed {
  at::Tensor x;
  at::Tensor logdet;
};

/// log N(x; 0, 1), the sum of each example: [B].
at::Tensor standard_normal_logp(const at::Tensor& x);

/// A shift and a scale of each channel (Kingma & Dhariwal, 2018), 0 and 1 at first: as in
/// DL-Art-School, the first batch does not change them.
class ActNorm : public torch::nn::Module {
 public:
  explicit ActNorm(int64_t channels);
  at::Tensor forward(const at::Tensor& x) const;
  Flowed forward(const Flowed& in) const;
  Flowed reversed(const Flowed& in) const;

 private:
  at::Tensor logdet_of(const at::Tensor& x) const;

  at::Tensor bias_, logs_;  ///< [1, C, 1, 1]
};

/// A 1 x 1 convolution by a square matrix (Kingma & Dhariwal, 2018), a rotation at first.
class InvertibleConvolution : public torch::nn::Module {
 public:
  explicit InvertibleConvolution(int64_t channels);
  Flowed forward(const Flowed& in) const;
  /// The inverse is found in float64.
  Flowed reversed(const Flowed& in) const;

 private:
  at::Tensor logdet_of(const at::Tensor& x) const;

  at::Tensor weight_;  ///< [C, C]
};

/// A convolution of 3 x 3 that makes zeros at first, whose output each channel scales.
class ZeroConvolution : public torch::nn::Module {
 public:
  ZeroConvolution(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor weight_, bias_;
  at::Tensor logs_;  ///< [out, 1, 1]
};

/// What a coupling is made of.
struct CouplingSizes {
  int64_t features = 0;  ///< Channels of the features of the smaller image.
  int64_t hidden = 64;   ///< Channels within.
  double eps = 1e-4;     ///< The smallest scale.
};

/// The conditional affine coupling and the affine injector of SRFlow (Lugmayr et al., 2020): the
/// features scale and shift all channels, and then, with the first half of the channels, the second
/// half.
class Coupling : public torch::nn::Module {
 public:
  Coupling(int64_t channels, const CouplingSizes& sizes);
  Flowed forward(const Flowed& in, const at::Tensor& features);
  Flowed reversed(const Flowed& in, const at::Tensor& features);

 private:
  /// A scale and a shift, each of half as many channels as `network` makes.
  std::pair<at::Tensor, at::Tensor> scale_and_shift(torch::nn::Sequential& network,
                                                    const at::Tensor& seen) const;

  int64_t first_;  ///< Channels that are not changed by themselves.
  double eps_;
  torch::nn::Sequential by_half_{nullptr}, by_features_{nullptr};
};

/// ActNorm, an invertible convolution, and a coupling, if there is one.
class FlowStep : public torch::nn::Module {
 public:
  /// `coupling` is null for a step without one, the transition step of SRFlow.
  FlowStep(int64_t channels, const CouplingSizes* coupling);
  /// `features` [B, features, H, W] have the height and width of `in`.
  Flowed forward(const at::Tensor& x, const at::Tensor& logdet, const at::Tensor& features);
  Flowed reversed(const Flowed& in, const at::Tensor& features);

 private:
  std::shared_ptr<ActNorm> norm_;
  std::shared_ptr<InvertibleConvolution> convolution_;
  std::shared_ptr<Coupling> coupling_;
};

/// What a split is made of.
struct SplitSizes {
  double logs_eps = 0;     ///< Added to the standard deviation.
  double ratio = 0.5;      ///< The part of the channels that leaves the flow.
  double loss_weight = 1;  ///< Of the logarithm of their probability.
};

/// Some channels leave the flow as a latent, normalized by what the others say of them (Dinh et
/// al., 2017).
class Split : public torch::nn::Module {
 public:
  Split(int64_t channels, const SplitSizes& sizes);
  int64_t passed() const { return passed_; }
  int64_t consumed() const { return consumed_; }

  struct Parts {
    Flowed rest;
    at::Tensor latent;  ///< [B, consumed, H, W]
  };
  Parts forward(const Flowed& in) const;
  /// `latent` is drawn with the standard deviation `heat` when it is undefined; 0 stands for 1. As
  /// in DL-Art-School, mean and deviation then count twice: once when it is drawn, and once again
  /// as for a latent that is given.
  Flowed reversed(const Flowed& in, const at::Tensor& latent, double heat) const;

 private:
  /// The mean and the logarithm of the deviation that the rest gives.
  std::pair<at::Tensor, at::Tensor> prior(const at::Tensor& rest) const;
  at::Tensor logdet_of(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& logs) const;

  int64_t consumed_;
  int64_t passed_;
  SplitSizes sizes_;
  std::shared_ptr<ZeroConvolution> convolution_;
};

}  // namespace stepop::srflow
