#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// The computation of networks, for a log.
struct LoggedGraph {
  struct Node {
    std::string name;                      ///< `model/conv1/conv2d`; a slash makes a group.
    std::string op = {};                   ///< `conv2d`
    std::vector<std::string> inputs = {};  ///< Names of other nodes.
    std::vector<std::vector<int64_t>> shapes = {};  ///< The shapes of its results.
    int64_t parameters = 0;
  };

  std::vector<Node> nodes = {};
};

}  // namespace stepop
