// How likely the latents are that a flow makes.
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/step/evaluator.h"
#include "models/super_resolution/srflow.h"

namespace stepop::extensible {
namespace {

/// DL-Art-School's flow_gaussian_nll: the logarithm of the probability that normal numbers are the
/// latents which SRFlow (Lugmayr et al., 2020) makes of the keys `hq` and `lq`, without noise. Of
/// each example, the mean of its latents' sums: [B]. Higher is better.
class FlowGaussianNll : public Evaluator {
 public:
  struct Params {
    Port network;

    void declare(Parameters& p) { p.require("for", network, "the network, an srflow"); }
  };

  FlowGaussianNll(const Params& params, const Config& config, Ports& ports)
      : network_(std::dynamic_pointer_cast<srflow::SrFlow>(ports.module(params.network))),
        hq_(ports.reads_key(config, "type", "hq")),
        lq_(ports.reads_key(config, "type", "lq")) {
    if (network_) return;
    throw params.network.error(
        fmt::format("the network \"{}\" is no srflow: it has no latents", params.network.name));
  }

  void evaluate(const StepState& state, const Iteration&, const std::string& name,
                EvalOutputs& made) override {
    const srflow::Encoded encoded =
        network_->encode(state.tensor(hq_), state.tensor(lq_), /*adds_noise=*/false);
    std::vector<at::Tensor> each;
    for (const auto& latent : encoded.latents) {
      each.push_back(srflow::standard_normal_logp(latent));
    }
    made.labels.set(name, at::stack(each).mean(0));
  }

 private:
  std::shared_ptr<srflow::SrFlow> network_;
  Slot hq_, lq_;
};

STEPOP_REGISTER_EVALUATOR(flow_gaussian_nll, FlowGaussianNll,
                          {"How likely the latents are that SRFlow makes of hq and lq."});

}  // namespace
}  // namespace stepop::extensible
