#pragma once

#include <string>
#include <vector>

#include "runtime/train/distributed/place.h"

namespace stepop {

/// The position of one of a machine's logical processors.
struct Processor {
  int number = 0;
  int package = 0;
  int core = 0;  ///< Within the package; two processors of one core share its units.
};

/// The processors that this process may use, as Linux describes them; empty where it does not.
std::vector<Processor> own_processors();

/// Assigns processors to each of `count` processes: neighbours, so that processes share no core
/// and, where possible, no package. The shares differ by at most one processor. Empty when there
/// are fewer processors than processes.
std::vector<std::vector<int>> processor_shares(std::vector<Processor> processors, int count);

/// Binds the current and future threads of this process to its share of the allowed processors,
/// among the processes of this machine. All of these processes must be allowed the same processors.
/// Returns the share, such as `0-3,8`; empty when nothing is bound because there are fewer
/// processors than processes.
std::string bind_to_share(const Place& place);

}  // namespace stepop
