#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/log/logs.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/step/split_step.h"

namespace stepop {

class Update;

/// The train ops of a step, with `cuda_graph: true`: `step_op`, the losses and their backward
/// passes are recorded once as graphs of the device, and later steps launch these as a whole
/// (torch.cuda.CUDAGraph), on memory into which each batch is copied.
///
/// An update is in the graph as well when no step changes what it reads of the host. Otherwise,
/// with a schedule for instance, it stays outside, between two graphs: it checks and clips its
/// gradients and makes the optimizer's step without a graph. The bits are the same.
///
/// Each set of due train ops, shape of the batch, choice of frozen parameters and place of the
/// updates has graphs of its own, after some steps without graphs; beyond the fourth set, steps run
/// without graphs.
class CapturedStep {
 public:
  /// `context` must outlive this, and have passed `check_captures`.
  explicit CapturedStep(const Context& context);
  ~CapturedStep();

  /// Runs the train ops of these names on `batch`, the step's only one, and returns their results.
  /// Afterwards the log ops of `train` are those of this step. Throws Error for a step that a graph
  /// cannot hold.
  OrderedMap<Scalars> run(SplitStep& train, const Batch& batch,
                          const std::vector<std::string>& ops);

 private:
  struct Graph;

  Graph* graph_for(const Batch& batch, const std::vector<std::string>& ops);
  OrderedMap<Scalars> run_as_ever(Graph* graph, SplitStep& train,
                                  const std::vector<std::string>& ops);
  void capture(Graph& graph, SplitStep& train, const Batch& batch,
               const std::vector<std::string>& ops);
  void record(Graph& graph, SplitStep& train, const std::vector<std::string>& ops);
  void check_nothing_waits() const;
  void begin_piece(Graph& graph);
  void end_piece(Graph& graph);
  void update_outside(Graph& graph, Update& update);
  void abandon(Graph& graph);
  [[noreturn]] void refuse(const std::string& why) const;

  const Context& context_;
  c10::Stream stream_;  ///< Of warm-ups and captures; LibTorch captures no default stream.
  std::map<std::string, std::unique_ptr<Graph>> graphs_;
};

}  // namespace stepop
