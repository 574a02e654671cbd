#include "runtime/train/distributed/gradient_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "runtime/train/distributed/link.h"
#include "runtime/train/distributed/sum_times.h"

namespace stepop {
namespace {

/// The number of bytes of gradients in one message; the last layers come first. PyTorch's own
/// numbers are for fast networks.
constexpr int64_t kFirstBytes = 1 << 20;
constexpr int64_t kMostBytes = 25 << 20;

/// Sums gradients without dividing: each process weights its share of the loss before the backward.
class SumHook : public c10d::CommHookInterface {
 public:
  SumHook(Link& link, SumTimes& times) : link_(link), times_(times) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> tensors{bucket.getBufferRef()};
    if (link_.stays_on(tensors[0])) {
      const auto sum = link_.group()->allreduce(tensors);
      link_.follow(sum);
      return sum->getFuture();
    }
    const auto begin = Profile::Clock::now();
    const auto sum = link_.group()->allreduce(tensors);
    times_.add(sum, begin, tensors[0].nbytes(), bucket.isLast());
    return link_.guarded(sum);
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  Link& link_;
  SumTimes& times_;
};

}  // namespace

/// c10d's Reducer over the parameters that currently require gradients.
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
    reducer_->register_comm_hook(std::make_unique<SumHook>(link, times_));
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

  void run(const at::Tensor& loss, const std::function<void()>& backward, Profile* profile) {
    times_.begin_pass(profile);
    reducer_->prepare_for_backward({loss});
    try {
      backward();
    } catch (const std::exception&) {
      times_.end_pass();
      throw;
    }
    times_.end_pass();
  }

 private:
  std::vector<at::Tensor> all_;
  SumTimes times_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

GradientSum::GradientSum(World& world, std::vector<at::Tensor> parameters)
    : world_(world), parameters_(std::move(parameters)) {}

GradientSum::~GradientSum() {
  if (World::is_broken()) overlapped_.release();  // the operations of a broken world never end
}

bool GradientSum::overlaps() const {
  int64_t bytes = 0;
  for (const auto& parameter : parameters_) {
    // c10d's Reducer hands Gloo tensors of the device.
    if (!parameter.is_cpu() && !world_.stays_on(parameter.device())) return false;
    if (parameter.requires_grad()) bytes += static_cast<int64_t>(parameter.nbytes());
  }
  return bytes > kFirstBytes;
}

void GradientSum::overlap(const at::Tensor& loss, const std::function<void()>& backward,
                          Profile* profile) {
  // Freezing changes which parameters are trained.
  if (!overlapped_ || !overlapped_->fits(parameters_)) {
    overlapped_.reset();
    overlapped_ = std::make_unique<Overlapped>(*world_.link(), parameters_);
  }
  overlapped_->run(loss, backward, profile);
}

void GradientSum::sum(const at::Tensor& beside) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> trained = Overlapped::trained(parameters_);
  // A message of float32 takes the numbers along.
  const bool fits = !trained.empty() && trained[0].scalar_type() == at::kFloat &&
                    trained[0].is_cpu() && beside.defined() && beside.is_cpu();
  if (beside.defined() && !fits) world_.sum(beside);
  // Messages of gradients with one type and device, of about one bucket's bytes each.
  size_t first = 0;
  while (first < trained.size()) {
    size_t end = first;
    int64_t bytes = 0;
    while (end < trained.size() && bytes < kMostBytes &&
           trained[end].scalar_type() == trained[first].scalar_type() &&
           trained[end].device() == trained[first].device()) {
      bytes += static_cast<int64_t>(trained[end++].nbytes());
    }
    sum(at::TensorList(trained).slice(first, end - first),
        fits && first == 0 ? beside : at::Tensor());
    first = end;
  }
}

/// The message also has, after the gradients, how many processes have each of them. Between devices
/// this is a message of its own between hosts, which then need not wait for the device.
void GradientSum::sum(at::TensorList parameters, const at::Tensor& beside) {
  std::vector<at::Tensor> flat;
  if (beside.defined()) flat.push_back(beside.to(at::kFloat));
  const at::Tensor counts = at::zeros({static_cast<int64_t>(parameters.size())});
  auto* const has = counts.mutable_data_ptr<float>();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& gradient = parameters[i].grad();
    has[i] = gradient.defined() ? 1 : 0;
    flat.push_back(gradient.defined()
                       ? gradient.reshape({-1})
                       : at::zeros({parameters[i].numel()}, parameters[i].options()));
  }
  const bool is_apart = world_.stays_on(parameters[0].device());
  if (is_apart) {
    world_.sum(counts);
  } else {
    flat.push_back(counts.to(parameters[0].options()));
  }
  const at::Tensor together = at::cat(flat);
  world_.sum(together);
  const at::Tensor all = is_apart
                             ? counts
                             : together.narrow(0, together.numel() - counts.numel(), counts.numel())
                                   .to(at::TensorOptions(at::kCPU).dtype(at::kFloat));
  const auto* const all_have = all.const_data_ptr<float>();
  int64_t offset = beside.defined() ? beside.numel() : 0;
  if (beside.defined()) beside.copy_(together.narrow(0, 0, offset));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor sum = together.narrow(0, offset, parameters[i].numel());
    offset += parameters[i].numel();
    if (!(all_have[i] > 0)) continue;
    at::Tensor& gradient = parameters[i].mutable_grad();
    if (!gradient.defined()) gradient = at::empty_like(parameters[i]);
    gradient.copy_(sum.view(parameters[i].sizes()));
  }
}

}  // namespace stepop
