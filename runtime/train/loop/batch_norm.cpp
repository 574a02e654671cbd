#include "runtime/train/loop/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/profile.h"
#include "runtime/data/loader.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/swa.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/random_fork.h"
#include "runtime/train/step/snapshot.h"

namespace stepop {
namespace {

const BatchOrder& training_order(const Context& context) {
  try {
    return context.splits.order("train");
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}\nthe averages of swa lack statistics of batch normalization, which are "
                    "measured over datasets/train; eval_weights: model needs none",
                    error.what()),
        error.exit_code());
  }
}

}  // namespace

void measure_batch_norm(Iterator& iterator, const Context& context, Position& position,
                        const InterruptCheck& interrupt) {
  Swa* const swa = context.networks.averages_to_measure();
  if (swa == nullptr) return;
  const Span span(context.profile.get(), "batch normalization of averages");
  const BatchOrder& order = training_order(context);
  LoaderOptions options = context.splits.loader_options();
  options.profile = context.profile;
  options.interrupt = interrupt;
  options.end_batch = order.batches_per_epoch();
  if (swa->most_batches() > 0) {
    options.end_batch = std::min(options.end_batch, swa->most_batches());
  }
  const Snapshot before(context);
  try {
    const RandomFork fork(context.seed, context.device);
    const AveragesGuard weights(swa);
    Swa::Measurement measurement(*swa);
    Loader loader(context.splits.source("train", order), options);
    while (loader.has_next()) {
      if (interrupt) interrupt();
      seed_generators(
          mix_seed({context.seed, seed_of("swa"), static_cast<uint64_t>(position.global_step),
                    static_cast<uint64_t>(loader.position())}),
          context.device);
      const Batch batch = loader.next();
      run_on(context, "train", batch, [&] {
        return call_step_op(iterator, context, position, "train", /*is_training=*/true, batch);
      });
    }
    measurement.keep();
  } catch (...) {
    before.restore();  // a checkpoint may follow
    throw;
  }
  before.restore();
}

}  // namespace stepop
