#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stepop {

/// The place of a process among the processes that train together, as given by the launcher.
struct Place {
  int rank = 0;
  int size = 1;        ///< All processes.
  int local_rank = 0;  ///< Among the processes of this machine.
  int local_size = 1;
  std::string host = "127.0.0.1";  ///< The host of rank 0, where the processes find each other.
  int port = 29500;
  bool has_store = false;    ///< The launcher itself listens there (torchrun).
  std::string attempt = {};  ///< Distinguishes a restart by the launcher from earlier attempts.
  std::string launcher = {};
};

/// Reads an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The variable of this process's environment.
std::optional<std::string> environment_variable(const std::string& name);

/// Reads the variables of torchrun (and of `--processes`): RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT; otherwise the variables of Slurm's srun, or of the
/// launcher of Open MPI or MPICH. Without any of them there is a single process. Throws UsageError,
/// with the name of the variable, for impossible numbers.
///
/// Slurm: rank 0 is on the first host of the step's list, and the port follows from the job's
/// number. MPI: MASTER_ADDR is needed when the processes are on several machines. MASTER_ADDR and
/// MASTER_PORT always take precedence.
Place read_place(const Environment& environment = environment_variable);

/// The first host of a list as Slurm writes it: `node[03-07,12],other` is `node03`.
std::string first_host(const std::string& list);

}  // namespace stepop
