#include "runtime/train/step/captured_step.h"

#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/profile.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/step/call_op.h"
#include "runtime/train/step/device_graph.h"
#include "runtime/train/step/uncaptured.h"

namespace stepop {
namespace {

/// The number of first steps without graphs, in which libraries choose algorithms and take memory:
/// as many as PyTorch's documentation of CUDA graphs asks for.
constexpr int64_t kWarmUps = 3;
constexpr size_t kMostGraphs = 4;

/// This thread gives the work of `call` to `stream`: after what its own stream has to do, and
/// before what follows there.
template <class Call>
void run_in_stream(const c10::Stream& stream, const Call& call) {
  const c10::impl::VirtualGuardImpl device(stream.device_type());
  const c10::Stream own = device.getStream(stream.device());
  const auto order = [&](const c10::Stream& first, const c10::Stream& second) {
    c10::Event event(first.device_type());
    event.record(first);
    event.block(second);
  };
  order(own, stream);
  {
    const c10::StreamGuard guard(stream);
    call();
  }
  order(stream, own);
}

/// Computes the weights of means within a graph.
Scalars with_weights(Scalars scalars) {
  for (auto& [name, scalar] : scalars) {
    const WeightedMean* mean = scalar.weighted();
    if (mean != nullptr && !mean->known_weight())
      scalar = WeightedMean(mean->value(), mean->weight());
  }
  return scalars;
}

/// The results in memory of their own: the next launch overwrites that of a graph.
OrderedMap<Scalars> copied(const OrderedMap<Scalars>& results) {
  OrderedMap<Scalars> copies;
  for (const auto& [op, scalars] : results) {
    Scalars& copy = copies[op];
    for (const auto& [name, scalar] : scalars) {
      const WeightedMean* mean = scalar.weighted();
      at::Tensor value = scalar.tensor()->detach().clone();
      copy.set(name, mean == nullptr
                         ? Scalar(std::move(value))
                         : Scalar(WeightedMean(std::move(value), mean->weight().clone())));
    }
  }
  return copies;
}

}  // namespace

/// What one kind of step is made of.
struct CapturedStep::Graph {
  struct Piece {
    std::unique_ptr<DeviceGraph> graph;
    /// Whose `apply` follows: they are in the graph, but perhaps for the last.
    std::vector<std::pair<Update*, Update::Captured>> updates;

    void launch() const {
      graph->launch();
      for (const auto& [update, captured] : updates) update->apply(captured);
    }
  };

  int64_t warm_ups = 0;
  std::vector<Piece> pieces;  ///< Empty before the capture.
  // The tensors of these are in memory of the graphs, or keep it.
  Batch batch;
  std::optional<StepOps> closures;
  OrderedMap<Scalars> results;
  at::Tensor end_mark;
};

CapturedStep::CapturedStep(const Context& context)
    : context_(context),
      stream_(c10::impl::VirtualGuardImpl(context.device.type())
                  .getStreamFromGlobalPool(context.device)) {}

CapturedStep::~CapturedStep() = default;

void CapturedStep::refuse(const std::string& why) const {
  throw context_.config.error(
      kCudaGraph, fmt::format("a graph cannot hold this step: {}; or leave cuda_graph out", why));
}

/// Null when there are too many kinds of steps.
CapturedStep::Graph* CapturedStep::graph_for(const Batch& batch,
                                             const std::vector<std::string>& ops) {
  std::string kind = fmt::format("{}", fmt::join(ops, " "));
  for (const auto& [name, tensor] : batch.tensors()) {
    kind += fmt::format(";{} {}{}", name, static_cast<int>(tensor.scalar_type()), tensor.sizes());
  }
  for (const auto& [name, update] : context_.updates) kind += update->is_repeatable() ? '+' : '-';
  if (context_.config.has("freeze")) {
    for (const auto& [name, update] : context_.updates) {
      for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
        kind += tensor.requires_grad() ? '1' : '0';
      }
    }
  }
  const auto found = graphs_.find(kind);
  if (found != graphs_.end()) return found->second.get();
  if (graphs_.size() == kMostGraphs) return nullptr;
  return graphs_.emplace(kind, std::make_unique<Graph>()).first->second.get();
}

OrderedMap<Scalars> CapturedStep::run(SplitStep& train, const Batch& batch,
                                      const std::vector<std::string>& ops) {
  if (!batch.texts().empty()) {
    refuse(
        fmt::format("its batches have the texts \"{}\", which the host reads: leave them out, "
                    "as the view Select does",
                    batch.texts().begin()->first));
  }
  Graph* graph = graph_for(batch, ops);
  if (graph == nullptr || graph->warm_ups < kWarmUps) return run_as_ever(graph, train, ops);
  if (graph->pieces.empty()) {
    capture(*graph, train, batch, ops);
  } else {
    const Span span(context_.profile.get(), "graph of the step");
    for (const auto& [name, tensor] : batch.tensors()) {
      at::Tensor(graph->batch[name]).copy_(tensor, /*non_blocking=*/true);
    }
    run_op(context_, "train", ops.front(), [&] {
      for (const auto& piece : graph->pieces) piece.launch();
    });
  }
  Batch now = graph->batch;
  now.set_indices(batch.indices());
  train.take(std::move(now), graph->closures);
  return copied(graph->results);
}

/// `graph`: for which this step is one of the first; null for none.
OrderedMap<Scalars> CapturedStep::run_as_ever(Graph* graph, SplitStep& train,
                                              const std::vector<std::string>& ops) {
  OrderedMap<Scalars> results;
  const auto run_ops = [&] {
    for (const auto& op : ops) results.set(op, train.train(op));
  };
  if (graph == nullptr || ++graph->warm_ups < kWarmUps) {
    graph == nullptr ? run_ops() : run_in_stream(stream_, run_ops);
    return results;
  }
  const State before = tracked_places(context_);
  run_in_stream(stream_, run_ops);
  const std::string change = uncaptured_change(before, tracked_places(context_));
  if (!change.empty()) refuse(change);
  return results;
}

void CapturedStep::capture(Graph& graph, SplitStep& train, const Batch& batch,
                           const std::vector<std::string>& ops) {
  graph.batch = batch;
  for (const auto& [name, tensor] : batch.tensors()) graph.batch.set(name, tensor.clone());
  graph.end_mark = at::zeros({1}, at::TensorOptions().device(context_.device));
  try {
    run_in_stream(stream_, [&] { record(graph, train, ops); });
  } catch (const UsageError&) {
    throw;
  } catch (const NonFinite&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format(
        "cuda_graph: a graph cannot hold what waits for the device: item(), copies to and from the "
        "host, shapes that depend on values. Leave it to log ops, or leave cuda_graph out: {}",
        error_text(error)));
  }
  for (auto& [name, update] : context_.updates) update->capture({});
  graph.pieces.back().launch();
}

void CapturedStep::check_nothing_waits() const {
  for (const auto& [name, update] : context_.updates) {
    if (!update->is_pending()) continue;
    refuse(fmt::format("gradients of {} wait for a later step: call apply() in each", name));
  }
}

/// Records the step and runs it, but for its last piece.
void CapturedStep::record(Graph& graph, SplitStep& train, const std::vector<std::string>& ops) {
  check_nothing_waits();
  const Profile::WithoutWaits no_waits(context_.profile.get());
  for (auto& [name, update] : context_.updates) {
    update->capture([&graph, of = update.get(), this] {
      const StepReads of_update;  // which reads them in each step anew
      if (!of->is_repeatable()) return update_outside(graph, *of);
      auto& updates = graph.pieces.back().updates;
      updates.emplace_back(of, of->capture_apply());
    });
  }
  const StepReads reads;
  try {
    train.take(graph.batch);
    begin_piece(graph);
    for (const auto& op : ops) graph.results.set(op, with_weights(train.train(op)));
    graph.closures = train.closures();
    if (graph.pieces.size() > 1) graph.end_mark.zero_();  // a graph without work is a warning
    end_piece(graph);
  } catch (...) {
    abandon(graph);
    throw;
  }
  if (reads.found() != nullptr) {
    refuse(
        fmt::format("it uses {}, which the host knows and changes, and a graph repeats one "
                    "step: leave what depends on it to the optimizer or to log ops",
                    reads.found()));
  }
  check_nothing_waits();
  if (graph.pieces.front().updates.empty()) refuse("no update of the runtime is in it");
  for (const auto& [op, scalars] : graph.results) {
    for (const auto& [name, scalar] : scalars) {
      if (scalar.tensor() != nullptr && scalar.tensor()->defined()) continue;
      refuse(
          fmt::format("{} returns \"{}\" as a number of the host, and a graph repeats it: "
                      "return a tensor of the device, or log it in a log op",
                      op, name));
    }
  }
}

/// All kinds of steps share memory. What a step leaves there (results, gradients, what its log ops
/// read) is used before another is launched: `run` copies the results, `apply` takes the gradients.
void CapturedStep::begin_piece(Graph& graph) {
  const DeviceGraph* beside = nullptr;
  for (const auto& [kind, other] : graphs_) {
    if (!other->pieces.empty()) beside = other->pieces.front().graph.get();
  }
  graph.pieces.push_back({.graph = make_device_graph(context_.device.type()), .updates = {}});
  graph.pieces.back().graph->begin(beside);
}

void CapturedStep::end_piece(Graph& graph) { graph.pieces.back().graph->end(); }

/// Between two pieces of the graph.
void CapturedStep::update_outside(Graph& graph, Update& update) {
  end_piece(graph);
  Graph::Piece& piece = graph.pieces.back();
  piece.updates.emplace_back(&update, update.take_captured());
  piece.launch();
  begin_piece(graph);
}

/// Ends a capture that failed.
void CapturedStep::abandon(Graph& graph) {
  for (auto& [name, update] : context_.updates) update->capture({});
  try {
    if (!graph.pieces.empty()) graph.pieces.back().graph->end();
  } catch (const std::exception&) {  // of a capture that is over, or that the failure has spoilt
  }
}

}  // namespace stepop
