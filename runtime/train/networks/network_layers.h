#pragma once

#include <string>

namespace stepop {

/// A network whose layers are known by name, so that it can end at one of them.
class NetworkLayers {
 public:
  virtual ~NetworkLayers() = default;
  /// From now on `forward` returns what the layer at `path`, `layer1.0`, gives when it is called
  /// last. Layers behind it still run. Throws Error for a layer that is not there, or that gives no
  /// single tensor.
  virtual void end_at(const std::string& path) = 0;
};

}  // namespace stepop
