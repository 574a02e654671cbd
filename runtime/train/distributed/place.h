#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stepop {

/// Where a process stands among those that train together, as its launcher says.
struct Place {
  int rank = 0;
  int size = 1;        ///< Processes in all.
  int local_rank = 0;  ///< Among those of this machine.
  int local_size = 1;
  std::string host = "127.0.0.1";  ///< Of rank 0, where the processes find each other.
  int port = 29500;
  bool has_store = false;    ///< The launcher itself listens there (torchrun).
  std::string attempt = {};  ///< Keeps a restart by the launcher apart from the attempt before it.
  std::string launcher = {};
};

/// Reads an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// That of this process.
std::optional<std::string> environment_variable(const std::string& name);

/// The variables of torchrun (and of `--processes`): RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; else those of Slurm's srun, Open MPI's or MPICH's
/// launcher. A single process where there are none. Throws UsageError, with the name of the
/// variable, for numbers that cannot be.
///
/// Slurm: rank 0 is on the first host of the step's list, and the port follows from the job's
/// number; MPI: MASTER_ADDR is needed when the processes are on several machines. MASTER_ADDR and
/// MASTER_PORT always win.
Place read_place(const Environment& environment = environment_variable);

/// The first host of a list as Slurm writes it: `node[03-07,12],other` is `node03`.
std::string first_host(const std::string& list);

}  // namespace stepop
