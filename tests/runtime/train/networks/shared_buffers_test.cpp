#include "runtime/train/networks/shared_buffers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <memory>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "tests/runtime/train/distributed/together.h"

namespace stepop {
namespace shared_buffers_test {

/// Batch normalization of a network from Python.
struct Normalization : torch::nn::Module {
  Normalization() {
    mean = register_buffer("running_mean", at::zeros({2}));
    register_buffer("running_var", at::zeros({2}));
  }
  at::Tensor mean;
};

/// Batch normalization, a table that steps write to, and a table that none does.
struct TestBuffers : torch::nn::Module {
  explicit TestBuffers(const Config& /*params*/)
      : norm(register_module("norm", torch::nn::BatchNorm1d(2))),
        exported(register_module("exported", std::make_shared<Normalization>())),
        table(register_buffer("table", at::zeros({2}, at::kLong))),
        still(register_buffer("still", at::full({2}, 7.0F))) {}
  torch::nn::BatchNorm1d norm;
  std::shared_ptr<Normalization> exported;
  at::Tensor table, still;
};

STEPOP_REGISTER_MODEL(TestBuffers, {"For tests.", {}});

template <class T>
std::string numbers(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  const T* data = whole.const_data_ptr<T>();
  return fmt::format("{}", fmt::join(data, data + whole.numel(), " "));
}

TEST_CASE("statistics become weighted means, what a step writes rank 0's, and nothing else moves") {
  const auto texts = together(3, [](World& world) {
    const Config config(parse_yaml("model: TestBuffers", {"a.yaml", 0}));
    Tracker tracker;
    const Networks networks(config, at::kCPU, tracker);
    auto* model = dynamic_cast<TestBuffers*>(networks.get("model").get());
    SharedBuffers buffers(world, networks);
    const int rank = world.rank();
    const double shares[] = {0.5, 0.5, 0};  // the last one has no example
    std::string text;
    for (int step = 1; step <= 2; ++step) {
      model->norm->running_mean.fill_(step + rank);
      // Batch normalization changes it without a new version.
      std::fill_n(model->exported->mean.mutable_data_ptr<float>(), 2, static_cast<float>(2 * rank));
      model->norm->running_var.fill_(rank == 2 ? 1e30 : 4.0 * rank);
      if (step == 1) model->table.fill_(10 + rank);
      buffers.share(shares[rank]);
      text += fmt::format("{} | {} | {} | {} | {}; ", numbers<float>(model->norm->running_mean),
                          numbers<float>(model->exported->mean),
                          numbers<float>(model->norm->running_var), numbers<int64_t>(model->table),
                          numbers<float>(model->still));
    }
    return text;
  });
  CHECK(texts == std::vector<std::string>(3,
                                          "1.5 1.5 | 1 1 | 2 2 | 10 10 | 7 7; "
                                          "2.5 2.5 | 1 1 | 2 2 | 10 10 | 7 7; "));
}

}  // namespace shared_buffers_test
}  // namespace stepop
