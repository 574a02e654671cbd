#include "runtime/train/distributed/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr int kMostProcesses = 1 << 20;
constexpr int kMostPorts = 65535;

std::optional<int> number(const Environment& environment, const std::string& name, int least,
                          int most) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  throw UsageError(fmt::format(
      "the environment variable {} is \"{}\": expected a number from {} to {}, as the launcher of "
      "several processes sets it; to train in one process, unset it",
      name, *text, least, most));
}

/// The variables in which a launcher gives a process's place.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // Last, because an mpirun within a job of Slurm also has these variables, with the job's
    // values.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};

/// The ports for Slurm jobs: one port per job, as long as there are enough.
constexpr int kFirstJobPort = 20000;
constexpr int kJobPorts = 10000;

void read_slurm(Place& place, const Environment& environment) {
  const auto hosts = environment("SLURM_STEP_NODELIST");
  if (hosts) place.host = first_host(*hosts);
  const auto job = number(environment, "SLURM_JOB_ID", 0, std::numeric_limits<int>::max());
  if (job) place.port = kFirstJobPort + *job % kJobPorts;
  // `4(x2),3`: the tasks of each machine. No simpler variable has the number of this machine's
  // tasks.
  const auto tasks = environment("SLURM_STEP_TASKS_PER_NODE");
  if (tasks) place.local_size = std::max(1, std::atoi(tasks->c_str()));
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string first_host(const std::string& list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const size_t end = std::min(list.find_first_of("-,]", at), list.size());
    host += list.substr(at + 1, end - at - 1);
    const size_t close = list.find(']', end);
    at = close == std::string::npos ? list.size() : close + 1;
  }
  return host;
}

Place read_place(const Environment& environment) {
  Place place;
  for (const Launcher& launcher : kLaunchers) {
    const auto size = number(environment, launcher.size, 1, kMostProcesses);
    if (!size || !environment(launcher.rank)) continue;
    place.launcher = environment("STEPOP_PROCESSES") ? "--processes" : launcher.name;
    place.size = *size;
    place.rank = number(environment, launcher.rank, 0, *size - 1).value_or(0);
    place.local_rank = number(environment, launcher.local_rank, 0, *size - 1).value_or(0);
    place.local_size = number(environment, launcher.local_size, 1, *size).value_or(1);
    if (place.launcher == "Slurm") read_slurm(place, environment);
    break;
  }
  if (const auto host = environment("MASTER_ADDR"); host && !host->empty()) place.host = *host;
  place.port = number(environment, "MASTER_PORT", 1, kMostPorts).value_or(place.port);
  place.has_store = environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  place.attempt = environment("TORCHELASTIC_RESTART_COUNT").value_or("");
  return place;
}

}  // namespace stepop
