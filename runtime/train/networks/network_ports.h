#pragma once

#include <string>

namespace stepop {

/// A network whose file decides how many inputs and results it has: it says them where an iterator
/// takes another number.
class NetworkPorts {
 public:
  virtual ~NetworkPorts() = default;
  /// `net.pt2 has two results, head [*, 10] and aux [*, 4]: ...`, with what to do.
  virtual std::string ports() const = 0;
};

}  // namespace stepop
