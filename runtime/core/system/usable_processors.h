#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepop {

/// A limit of processor time: so many processors' worth of it in each period.
struct ProcessorQuota {
  double processors = 0;
  std::string file;  ///< That sets it: `/sys/fs/cgroup/cpu.max`.
};

/// The least quota of this process's control group and of all that it lies in, of version 1
/// (`cpu.cfs_quota_us`) and 2 (`cpu.max`), as `docker run --cpus` sets it; nothing without one, and
/// where it cannot be read. `root` is a folder with `proc` and `sys`, for tests.
std::optional<ProcessorQuota> find_processor_quota(const std::string& root = "");

/// How many threads of this process can run at once: the processors that it may use (`taskset`),
/// and no more than its quota, rounded down, since threads that the quota stops wait for each
/// other. At least 1. The first call decides.
int64_t usable_processors();

/// Why these are less than the processors that the process may use, for people: `a quota of 1.5
/// (/sys/fs/cgroup/cpu.max)`; empty when they are not.
std::string processor_limit();

}  // namespace stepop
