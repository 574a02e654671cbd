#include "runtime/distributed/gradient_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "runtime/distributed/link.h"

namespace stepop {
namespace {

/// Gradients travel together up to so many bytes, those of the last layers first. PyTorch's own
/// numbers are for fast networks.
constexpr int64_t kFirstBytes = 1 << 20;
constexpr int64_t kMostBytes = 25 << 20;

/// Each process's share of the loss is weighted before the backward: the sum is what is wanted.
class SumHook : public c10d::CommHookInterface {
 public:
  explicit SumHook(Link& link) : link_(link) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> tensors{bucket.getBufferRef()};
    return link_.guarded(link_.group()->allreduce(tensors));
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  Link& link_;
};

}  // namespace

/// c10d's Reducer over those parameters that require gradients now.
class GradientSum::Overlapped {
 public:
  Overlapped(Link& link, const std::vector<at::Tensor>& all) : all_(trained(all)) {
    auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(
        all_, {static_cast<size_t>(kFirstBytes), static_cast<size_t>(kMostBytes)});
    std::reverse(buckets.begin(), buckets.end());
    reducer_ = std::make_unique<c10d::Reducer>(
        all_, buckets, link.group(), std::vector<bool>(all_.size(), false), kMostBytes,
        /*find_unused_parameters=*/true, /*gradient_as_bucket_view=*/true,
        std::unordered_map<size_t, std::string>(), kFirstBytes,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<int64_t>());
    reducer_->register_comm_hook(std::make_unique<SumHook>(link));
  }

  static std::vector<at::Tensor> trained(const std::vector<at::Tensor>& all) {
    std::vector<at::Tensor> trained;
    std::ranges::copy_if(all, std::back_inserter(trained),
                         [](const at::Tensor& tensor) { return tensor.requires_grad(); });
    return trained;
  }

  bool fits(const std::vector<at::Tensor>& all) const {
    return std::ranges::equal(all_, trained(all), [](const at::Tensor& a, const at::Tensor& b) {
      return a.unsafeGetTensorImpl() == b.unsafeGetTensorImpl();
    });
  }

  void begin(const at::Tensor& loss) { reducer_->prepare_for_backward({loss}); }

 private:
  std::vector<at::Tensor> all_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

GradientSum::GradientSum(World& world, std::vector<at::Tensor> parameters)
    : world_(world), parameters_(std::move(parameters)) {}

GradientSum::~GradientSum() {
  if (World::is_broken()) overlapped_.release();  // its operations never end
}

void GradientSum::begin_overlapped(const at::Tensor& loss) {
  // Freezing changes which parameters are trained.
  if (!overlapped_ || !overlapped_->fits(parameters_)) {
    overlapped_.reset();
    overlapped_ = std::make_unique<Overlapped>(*world_.link(), parameters_);
  }
  overlapped_->begin(loss);
}

void GradientSum::sum() {
  const at::NoGradGuard no_grad;
  const at::Tensor has =
      at::zeros({static_cast<int64_t>(parameters_.size())}, at::TensorOptions(at::kByte));
  auto* flags = has.mutable_data_ptr<uint8_t>();
  for (size_t i = 0; i < parameters_.size(); ++i) flags[i] = parameters_[i].grad().defined();
  world_.max(has);
  // By type and device, up to a bucket's bytes at a time.
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (flags[i] == 0) continue;
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(parameters_[i]);
    gradients.push_back(gradient);
  }
  size_t first = 0;
  while (first < gradients.size()) {
    size_t end = first;
    int64_t bytes = 0;
    std::vector<at::Tensor> flat;
    while (end < gradients.size() && bytes < kMostBytes &&
           gradients[end].scalar_type() == gradients[first].scalar_type() &&
           gradients[end].device() == gradients[first].device()) {
      bytes += static_cast<int64_t>(gradients[end].nbytes());
      flat.push_back(gradients[end].reshape({-1}));
      ++end;
    }
    const at::Tensor together = at::cat(flat);
    world_.sum(together);
    int64_t offset = 0;
    for (; first < end; ++first) {
      at::Tensor& gradient = gradients[first];
      gradient.copy_(together.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
      offset += gradient.numel();
    }
  }
}

}  // namespace stepop
