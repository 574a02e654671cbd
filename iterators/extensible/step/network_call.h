#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "iterators/extensible/step/ports.h"
#include "runtime/train/networks/network.h"

namespace stepop::extensible {

/// A network with one or several inputs that a loss calls.
class NetworkCall {
 public:
  NetworkCall(const Port& network, Ports& ports, size_t inputs)
      : NetworkCall(network, ports.module(network), inputs) {}
  NetworkCall(const Port& place, const std::shared_ptr<torch::nn::Module>& module, size_t inputs)
      : one_(std::dynamic_pointer_cast<Network>(module)),
        many_(std::dynamic_pointer_cast<MultiNetwork>(module)) {
    if (many_ || (one_ && inputs == 1)) return;
    throw place.error(one_ ? "the network has one input, and several are given"
                           : "the network derives from neither stepop::Network nor "
                             "stepop::MultiNetwork: it cannot be called from a config");
  }

  /// One of the network's outputs. Throws std::out_of_range if the network has too few.
  at::Tensor operator()(const std::vector<at::Tensor>& inputs, size_t output = 0) const {
    if (one_ && output == 0) return one_->forward(inputs.front());
    return many_ ? many_->forward_all(inputs).at(output)
                 : throw std::out_of_range("the network has one output");
  }

 private:
  std::shared_ptr<Network> one_;
  std::shared_ptr<MultiNetwork> many_;
};

}  // namespace stepop::extensible
