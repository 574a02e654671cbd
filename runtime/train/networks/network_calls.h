#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// The inputs of one call of a network, in their order. An input that was left out is undefined.
using NetworkInputs = std::vector<at::Tensor>;

/// Records the first calls of all networks during its lifetime, from whatever caller: examples of
/// the inputs of each network.
class NetworkCalls {
 public:
  /// `networks` must outlive this.
  explicit NetworkCalls(const Networks& networks);
  ~NetworkCalls();
  NetworkCalls(const NetworkCalls&) = delete;
  NetworkCalls& operator=(const NetworkCalls&) = delete;

  /// Copies of the inputs of up to four calls of a network: of calls in evaluation mode, if there
  /// were any. Empty when no call was recorded.
  const std::vector<NetworkInputs>& of(std::string_view network) const;

 private:
  struct Seen {
    std::vector<NetworkInputs> evaluating;
    std::vector<NetworkInputs> training;
  };

  const Networks& networks_;
  OrderedMap<Seen> seen_;
};

/// Whether calls of the network are recorded and `call_network` can call it: it derives from
/// Network or MultiNetwork.
bool is_callable(const torch::nn::Module& network);

/// Calls the network's `forward`, or `forward_all`. Throws Error for a network that is not
/// callable, or that returns an undefined tensor or no tensor.
std::vector<at::Tensor> call_network(torch::nn::Module& network, const NetworkInputs& inputs);

/// The number of rows of a call: the first dimension of the first tensor that has one; 0 without
/// one.
int64_t rows_of(const NetworkInputs& inputs);

/// Takes `rows` rows, starting at row `begin`, from the concatenation of all calls with the shapes
/// of the first call; starts over at the first row when there are no more. Inputs without such rows
/// are taken from the first call. Copies.
NetworkInputs take_rows(const std::vector<NetworkInputs>& calls, int64_t begin, int64_t rows);

/// The names of the defined inputs, with letters, digits and `_` only: the names that the network
/// gives, otherwise `input`, or `input_0`, `input_1`, ....
std::vector<std::string> names_of_inputs(const torch::nn::Module& network,
                                         const NetworkInputs& inputs);

}  // namespace stepop
