// An evaluation with its outputs written, against the forward pass alone.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/data/batch_source.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/evaluation.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/session/session.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr int64_t kBatchSize = 100;

void bench_examples(int64_t examples, int rounds) {
  const Config config =
      config_of(fmt::format("iterator: Classifier\nmodel: LeNet\noptimizer: Adam\nbatch_size: {}\n"
                            "datasets: {{validation: {{class: Synthetic, size: {}}}}}\n",
                            kBatchSize, examples));
  Session session(config, /*train=*/false, /*debug=*/false, /*allow_unknown=*/false);
  const ScratchFolder scratch;
  int count = 0;
  const auto evaluation = [&] {
    const std::string folder = scratch.path(std::to_string(count++));
    const Stopwatch watch;
    Evaluation(session.settings().evaluations.at(0), session.iterator(), session.context(), "none")
        .run(session.position(), folder, [](int64_t, int64_t) {});
    return watch.seconds();
  };

  const auto network = session.context().network<Network>();
  const BatchOrder& order = session.context().splits.evaluation_order("validation", 0);
  std::vector<at::Tensor> images;
  for (int64_t batch = 0; batch < order.batches_per_epoch(); ++batch) {
    std::vector<Random> randoms = order.randoms(batch);
    images.push_back(load_batch(session.context().dataset("validation"), order.indices(batch),
                                randoms)["image"]);
  }
  const auto forward = [&] {
    const at::NoGradGuard no_grad;
    network->eval();
    const Stopwatch watch;
    for (const auto& batch : images) network->forward(batch);
    return watch.seconds();
  };
  const auto times = take_turns(rounds, {evaluation, forward});
  print_row({fmt::format("{} images, outputs written", with_thousands(examples)),
             "forward pass over ready batches", speedup(times[0], times[1]),
             duration_text(median(times[0])), duration_text(median(times[1]))});
}

}  // namespace

void bench_evaluation() {
  print_header("Evaluation: LeNet, images of 28x28 in batches of 100");
  bench_examples(10000, 15);
  bench_examples(50000, 7);
}

}  // namespace stepop::bench
