#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// The inputs of one call of a network, in their order. One that is undefined was left out.
using NetworkInputs = std::vector<at::Tensor>;

/// Notes the first calls of all networks while it lives: examples of what each of them takes,
/// whoever calls it.
class NetworkCalls {
 public:
  /// `networks` must outlive this.
  explicit NetworkCalls(const Networks& networks);
  ~NetworkCalls();
  NetworkCalls(const NetworkCalls&) = delete;
  NetworkCalls& operator=(const NetworkCalls&) = delete;

  /// Copies of the inputs of up to four calls of a network: those in evaluation mode, if there were
  /// any. Empty when none was seen.
  const std::vector<NetworkInputs>& of(std::string_view network) const;

 private:
  struct Seen {
    std::vector<NetworkInputs> evaluating;
    std::vector<NetworkInputs> training;
  };

  const Networks& networks_;
  OrderedMap<Seen> seen_;
};

/// Whether calls of the network are seen, and `call_network` can call it: it derives from Network
/// or MultiNetwork.
bool is_callable(const torch::nn::Module& network);

/// The network's `forward`, or `forward_all`. Throws Error for one that is not callable, or that
/// returns an undefined tensor or none at all.
std::vector<at::Tensor> call_network(torch::nn::Module& network, const NetworkInputs& inputs);

/// The number of rows of a call: the first dimension of its first tensor that has one; 0: none has.
int64_t rows_of(const NetworkInputs& inputs);

/// `rows` rows from row `begin` on, of all calls that have the shapes of the first one after each
/// other, and again from the first one when there are no more. What has no such rows is as in the
/// first call. Copies.
NetworkInputs take_rows(const std::vector<NetworkInputs>& calls, int64_t begin, int64_t rows);

/// The names of the inputs that are defined, letters, digits and `_` only: those that the network
/// gives; else `input`, or `input_0`, `input_1`, ....
std::vector<std::string> names_of_inputs(const torch::nn::Module& network,
                                         const NetworkInputs& inputs);

}  // namespace stepop
