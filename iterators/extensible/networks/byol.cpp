#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/step/network_hooks.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/network_layers.h"

namespace stepop::extensible {
namespace {

namespace nn = torch::nn;

/// What a projector or a predictor is made of.
struct ProjectionSizes {
  int64_t output;
  int64_t hidden;
};

/// Two linear layers behind what a network makes of images. For feature maps [B, C, H, W],
/// `is_structural` puts two convolutions before, each of which halves height and width.
class Projection : public nn::Module {
 public:
  Projection(at::IntArrayRef sizes, const ProjectionSizes& projection, bool is_structural)
      : layers_(register_module("net", nn::Sequential())) {
    int64_t features = 1;
    for (size_t i = 1; i < sizes.size(); ++i) {
      features *= is_structural && i > 1 ? (sizes[i] + 3) / 4 : sizes[i];
    }
    for (int i = 0; is_structural && i < 2; ++i) {
      layers_->push_back(nn::Conv2d(nn::Conv2dOptions(sizes[1], sizes[1], 3).padding(1).stride(2)));
      layers_->push_back(nn::BatchNorm2d(sizes[1]));
      layers_->push_back(nn::ReLU());
    }
    if (is_structural) layers_->push_back(nn::Flatten());
    layers_->push_back(nn::Linear(features, projection.hidden));
    layers_->push_back(nn::BatchNorm1d(projection.hidden));
    layers_->push_back(nn::ReLU());
    layers_->push_back(nn::Linear(projection.hidden, projection.output));
    is_structural_ = is_structural;
  }

  at::Tensor forward(const at::Tensor& x) {
    return layers_->forward(is_structural_ ? x : x.flatten(1));
  }

 private:
  nn::Sequential layers_;
  bool is_structural_ = false;
};

struct ByolParams {
  int64_t image_size = 0;
  int64_t channels = 3;
  std::string hidden_layer;  ///< Empty: what the network returns.
  bool use_structural_mlp = false;
  int64_t projection_size = 256;
  int64_t projection_hidden_size = 4096;
  double moving_average_decay = 0.99;

  void declare(Parameters& p) {
    p.describe_required("subnet", "component model",
                        "the network that is trained: a picture to features, {class: Exported, "
                        "...}");
    p.require("image_size", image_size, "height and width of the pictures", at_least(1));
    p.add("channels", channels, "of the pictures", at_least(1));
    const Config* config = p.describe({"hidden_layer",
                                       "-1",
                                       "name of the layer of it that gives the features, avgpool; "
                                       "-1: what it returns",
                                       false,
                                       {.kind = "any"}});
    if (config != nullptr) read_layer(*config);
    p.add("use_structural_mlp", use_structural_mlp, "two convolutions before the projection");
    p.add("projection_size", projection_size, "numbers that are compared", at_least(1));
    p.add("projection_hidden_size", projection_hidden_size,
          "width of the hidden layers of projection and prediction", at_least(1));
    p.add("moving_average_decay", moving_average_decay,
          "of the network that the other view goes through", at_least(0).at_most(1));
  }

  void read_layer(const Config& config) {
    if (!config.has("hidden_layer") || *config.peek("hidden_layer") == Value(int64_t{-1})) return;
    if (config.peek("hidden_layer")->is_text()) {
      hidden_layer = config.get<std::string>("hidden_layer");
      return;
    }
    throw config.error("hidden_layer",
                       fmt::format("expected the name of a layer, avgpool, or -1, what the network "
                                   "returns, found {}",
                                   config.peek("hidden_layer")->describe()));
  }
};

/// The network that is trained, and the projector behind it.
class ByolEncoder : public nn::Module {
 public:
  ByolEncoder(const ByolParams& params, const Config& config, const ProjectionSizes& sizes) {
    net_ = std::dynamic_pointer_cast<Network>(models().build(config, "subnet"));
    if (!net_) throw config.error("subnet", "expected a network with one input and one output");
    register_module("net", net_);
    if (!params.hidden_layer.empty()) end_at(params.hidden_layer, config);
    const at::Tensor seen = representation_of_zeros(params, config);
    const bool is_structural = params.use_structural_mlp;
    if (seen.dim() < 2 || (is_structural && seen.dim() != 4)) {
      throw config.error("subnet",
                         fmt::format("expected a network that makes {} of a picture, found {}",
                                     is_structural ? "features [B, C, H, W]" : "features [B, ...]",
                                     describe_tensor(seen)));
    }
    projector_ = register_module("projector",
                                 std::make_shared<Projection>(seen.sizes(), sizes, is_structural));
  }

  at::Tensor forward(const at::Tensor& x) { return checkpointed(*projector_, net_->forward(x)); }

  std::string warning() const { return net_->warning(); }

 private:
  void end_at(const std::string& layer, const Config& config) {
    auto* layers = dynamic_cast<NetworkLayers*>(net_.get());
    if (layers == nullptr) {
      throw config.error("hidden_layer",
                         fmt::format("layers have names in networks from Python, {{class: "
                                     "Exported}}: expected -1, what the network returns, found "
                                     "\"{}\"",
                                     layer));
    }
    try {
      layers->end_at(layer);
    } catch (const Error& error) {
      throw config.error("hidden_layer", error.what());
    }
  }

  at::Tensor representation_of_zeros(const ByolParams& params, const Config& config) {
    const int64_t channels = params.channels;
    const int64_t size = params.image_size;
    const at::NoGradGuard no_grad;
    net_->eval();
    at::Tensor seen;
    try {
      seen = net_->forward(at::zeros({2, channels, size, size}));
    } catch (const std::exception& error) {
      throw config.error("subnet", fmt::format("it fails with pictures [2, {}, {}, {}] (channels, "
                                               "image_size): {}",
                                               channels, size, size, error_text(error)));
    }
    net_->train();
    return seen;
  }

  std::shared_ptr<Network> net_;
  std::shared_ptr<Projection> projector_;
};

/// BYOL (Grill et al., 2020): two views of pictures [B, C, H, W] to the losses of each example,
/// [B]. A network is trained so that what a predictor makes of one view is what a moving average of
/// the network makes of the other. Parameters have the names of DL-Art-School.
class Byol : public MultiNetwork, public NetworkHooks {
 public:
  using Params = ByolParams;

  Byol(const Params& params, const Config& config) : decay_(params.moving_average_decay) {
    const ProjectionSizes sizes{.output = params.projection_size,
                                .hidden = params.projection_hidden_size};
    online_ =
        register_module("online_encoder", std::make_shared<ByolEncoder>(params, config, sizes));
    predictor_ = register_module(
        "online_predictor",
        std::make_shared<Projection>(at::IntArrayRef{2, sizes.output}, sizes, false));
    target_ =
        register_module("target_encoder", std::make_shared<ByolEncoder>(params, config, sizes));
    const at::NoGradGuard no_grad;
    load_tensors("target_encoder", tensors_of(*target_), tensors_of(*online_));
    for (auto& parameter : target_->parameters()) parameter.requires_grad_(false);
  }

  std::vector<std::string> input_names() const override { return {"image_one", "image_two"}; }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    const at::Tensor& one = inputs.at(0);
    const at::Tensor& two = inputs.at(1);
    const at::Tensor projected_one = online_->forward(one);
    const at::Tensor projected_two = online_->forward(two);
    const at::Tensor predicted_one = predictor_->forward(projected_one);
    const at::Tensor predicted_two = predictor_->forward(projected_two);
    at::Tensor target_one, target_two;
    {
      const at::NoGradGuard no_grad;
      target_one = target_->forward(one);
      target_two = target_->forward(two);
    }
    return {distances(predicted_one, target_two) + distances(predicted_two, target_one)};
  }

  void update_for_step(int64_t) override {
    const auto online = online_->parameters();
    auto target = target_->parameters();
    for (size_t i = 0; i < target.size(); ++i) {
      target[i].mul_(decay_).add_(online[i], 1 - decay_);
    }
  }

  Scalars get_debug_values(int64_t) override { return {{"target_ema_beta", decay_}}; }

 private:
  /// The squared distances of vectors [B, D] of length one, [B].
  static at::Tensor distances(const at::Tensor& a, const at::Tensor& b) {
    const auto unit = [](const at::Tensor& x) {
      return x / at::linalg_vector_norm(x, 2, -1, /*keepdim=*/true).clamp_min(1e-12);
    };
    return 2 - 2 * (unit(a) * unit(b)).sum(-1);
  }

  double decay_;
  std::shared_ptr<ByolEncoder> online_, target_;
  std::shared_ptr<Projection> predictor_;
};

STEPOP_REGISTER_MODEL_AS("byol", Byol,
                         {"BYOL: two views of pictures to the losses of each example; trains "
                          "another network without labels."});

}  // namespace
}  // namespace stepop::extensible
