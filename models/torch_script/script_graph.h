#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace stepop {

/// What the code of a script's `forward` shows before it runs.
struct ScriptGraph {
  /// Something that `forward` assigns to, of the class in which it lies.
  struct Assigned {
    c10::ClassTypePtr owner;
    std::string name;
  };

  std::vector<Assigned> assigned;
  /// Operations that behave differently in training, such as `dropout`, whose mode is a constant of
  /// the code: `training` or `evaluation`. Sorted, each once.
  std::vector<std::string> training, evaluation;
  /// It calls through an interface, so that not all of it can be seen.
  bool is_partial = false;
};

/// Looks at the forward method of a script, with all that it calls.
ScriptGraph read_graph(const torch::jit::Module& script);

}  // namespace stepop
