#pragma once

#include <string>
#include <vector>

#include "runtime/train/distributed/place.h"

namespace stepop {

/// Where one of a machine's logical processors sits.
struct Processor {
  int number = 0;
  int package = 0;
  int core = 0;  ///< Within the package; two processors of one core share its units.
};

/// Those that this process may run on, as Linux describes them; empty where it does not.
std::vector<Processor> own_processors();

/// Numbers of processors for each of `count` processes: neighbours, so that no core and, where it
/// fits, no package is shared. The shares differ by one processor at most. Empty when there are
/// fewer processors than processes.
std::vector<std::vector<int>> processor_shares(std::vector<Processor> processors, int count);

/// Keeps the threads of this process, those that run and those to come, on its share of what it
/// may run on, among the processes of this machine. All of them must be allowed the same
/// processors. Returns which, as in `0-3,8`; empty when nothing is bound, since there are fewer
/// processors than processes.
std::string bind_to_share(const Place& place);

}  // namespace stepop
