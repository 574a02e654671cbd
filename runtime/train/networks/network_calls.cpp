#include "runtime/train/networks/network_calls.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

constexpr size_t kMostCalls = 4;

/// Inputs that autocast converted to 16 bits become float32, like the weights.
NetworkInputs copies_of(const NetworkInputs& inputs) {
  const at::NoGradGuard no_grad;
  NetworkInputs copies;
  for (const auto& input : inputs) {
    const bool is_short = input.defined() && (input.scalar_type() == at::kBFloat16 ||
                                              input.scalar_type() == at::kHalf);
    copies.push_back(!input.defined() ? at::Tensor()
                     : is_short       ? input.detach().to(at::kFloat)
                                      : input.detach().clone());
  }
  return copies;
}

bool has_rows(const at::Tensor& tensor, int64_t rows) {
  return tensor.defined() && tensor.dim() > 0 && tensor.size(0) == rows;
}

/// Whether two calls differ only in their rows.
bool fits(const NetworkInputs& a, const NetworkInputs& b) {
  if (a.size() != b.size() || rows_of(b) == 0) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined()) return false;
    if (!a[i].defined()) continue;
    if (a[i].dim() != b[i].dim() || a[i].scalar_type() != b[i].scalar_type()) return false;
    const bool is_batch = has_rows(a[i], rows_of(a));
    if (is_batch != has_rows(b[i], rows_of(b))) return false;
    if (a[i].sizes().slice(is_batch ? 1 : 0) != b[i].sizes().slice(is_batch ? 1 : 0)) return false;
  }
  return true;
}

}  // namespace

NetworkCalls::NetworkCalls(const Networks& networks) : networks_(networks) {
  for (const auto& name : networks.names()) {
    const auto module = networks.get(name);
    auto* watched = dynamic_cast<WatchedCalls*>(module.get());
    if (watched == nullptr) continue;
    seen_.set(name, {});
    watched->watch_calls([this, name, network = module.get()](const NetworkInputs& inputs) {
      Seen& seen = seen_[name];
      auto& calls = network->is_training() ? seen.training : seen.evaluating;
      if (calls.size() < kMostCalls) calls.push_back(copies_of(inputs));
    });
  }
}

NetworkCalls::~NetworkCalls() {
  for (const auto& [name, seen] : seen_) {
    dynamic_cast<WatchedCalls&>(*networks_.get(name)).watch_calls({});
  }
}

const std::vector<NetworkInputs>& NetworkCalls::of(std::string_view network) const {
  static const std::vector<NetworkInputs> kNone;
  const Seen* seen = seen_.find(network);
  if (seen == nullptr) return kNone;
  return seen->evaluating.empty() ? seen->training : seen->evaluating;
}

bool is_callable(const torch::nn::Module& network) {
  return dynamic_cast<const Network*>(&network) != nullptr ||
         dynamic_cast<const MultiNetwork*>(&network) != nullptr;
}

std::vector<at::Tensor> call_network(torch::nn::Module& network, const NetworkInputs& inputs) {
  std::vector<at::Tensor> outputs;
  if (auto* one = dynamic_cast<Network*>(&network)) {
    outputs = {one->forward(inputs.at(0))};
  } else if (auto* many = dynamic_cast<MultiNetwork*>(&network)) {
    outputs = many->forward_all(inputs);
  } else {
    throw Error("the network derives from neither stepop::Network nor stepop::MultiNetwork");
  }
  const bool is_whole =
      std::ranges::all_of(outputs, [](const auto& each) { return each.defined(); });
  if (outputs.empty() || !is_whole) throw Error("the network returned no tensor");
  return outputs;
}

int64_t rows_of(const NetworkInputs& inputs) {
  for (const auto& input : inputs) {
    if (input.defined() && input.dim() > 0) return input.size(0);
  }
  return 0;
}

NetworkInputs take_rows(const std::vector<NetworkInputs>& calls, int64_t begin, int64_t rows) {
  const at::NoGradGuard no_grad;
  const NetworkInputs& first = calls.at(0);
  NetworkInputs taken;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!has_rows(first[i], rows_of(first)) || rows_of(first) == 0) {
      taken.push_back(first[i].defined() ? first[i].clone() : at::Tensor());
      continue;
    }
    std::vector<at::Tensor> all;
    for (const auto& call : calls) {
      if (fits(first, call)) all.push_back(call[i]);
    }
    const at::Tensor joined = at::cat(all);
    const at::Tensor index =
        at::arange(begin, begin + rows, at::TensorOptions(joined.device()).dtype(at::kLong));
    taken.push_back(joined.index_select(0, index.remainder(joined.size(0))));
  }
  return taken;
}

std::vector<std::string> names_of_inputs(const torch::nn::Module& network,
                                         const NetworkInputs& inputs) {
  const auto* many = dynamic_cast<const MultiNetwork*>(&network);
  const std::vector<std::string> given =
      many != nullptr ? many->input_names() : std::vector<std::string>{"input"};
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    std::string name = i < given.size() ? given[i] : fmt::format("input_{}", i);
    for (char& c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace stepop
