#include "runtime/core/system/usable_processors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "tests/scratch_folder.h"

namespace stepop {
namespace usable_processors_test {

/// A folder with `proc` and `sys` of a machine.
struct Machine {
  Machine(const std::string& mounts, const std::string& groups) {
    std::filesystem::create_directories(folder / "proc/self");
    folder.write("proc/self/mountinfo", mounts);
    folder.write("proc/self/cgroup", groups);
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder / path).parent_path());
    folder.write(path, text);
  }
  /// `1.5 of /sys/fs/cgroup/cpu.max`; empty for no quota.
  std::string quota() const {
    const auto found = find_processor_quota(folder.path());
    return found ? fmt::format("{} of {}", found->processors, found->file) : "";
  }

  ScratchFolder folder;
};

const std::string kVersion2 =
    "21 27 0:20 / /proc rw shared:12 - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string kVersion1 =
    "33 32 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "34 32 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

TEST_CASE("a quota is that of the process's group, or the least one above it") {
  const Machine machine(kVersion2, "0::/a/b\n");
  CHECK(machine.quota() == "");
  machine.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(machine.quota() == "");
  machine.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(machine.quota() == "1.5 of /sys/fs/cgroup/a/cpu.max");
  machine.write("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  CHECK(machine.quota() == "1.5 of /sys/fs/cgroup/a/cpu.max");
  machine.write("sys/fs/cgroup/a/b/cpu.max", "25000 50000\n");
  CHECK(machine.quota() == "0.5 of /sys/fs/cgroup/a/b/cpu.max");
  // Of another group.
  machine.write("sys/fs/cgroup/c/cpu.max", "100 100000\n");
  CHECK(machine.quota() == "0.5 of /sys/fs/cgroup/a/b/cpu.max");
}

TEST_CASE("a container that has a namespace of its own sees its group as the top") {
  const Machine machine(kVersion2, "0::/\n");
  machine.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(machine.quota() == "2 of /sys/fs/cgroup/cpu.max");
}

TEST_CASE("quotas of the first version") {
  const Machine machine(kVersion1, "5:cpuset:/x\n4:cpu,cpuacct:/a\n0::/\n");
  machine.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  machine.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  CHECK(machine.quota() == "");
  machine.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n");
  CHECK(machine.quota() == "1 of /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us");
}

TEST_CASE("a container of the first version has the mount of its own group alone") {
  const Machine machine("34 32 0:31 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
                        "4:cpu:/docker/1f\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(machine.quota() == "0.5 of /sys/fs/cgroup/cpu/cpu.cfs_quota_us");
}

TEST_CASE("what cannot be read is no quota") {
  CHECK_FALSE(find_processor_quota("/nowhere"));
  const Machine machine("nonsense\n- - -\n1 2 3 / /a - cgroup2\n", "nonsense\n:::\n0:\n");
  CHECK(machine.quota() == "");
  const Machine broken(kVersion2, "0::/a\n");
  broken.write("sys/fs/cgroup/a/cpu.max", "many of them\n");
  CHECK(broken.quota() == "");
  broken.write("sys/fs/cgroup/a/cpu.max", "100000 0\n");
  CHECK(broken.quota() == "");
}

TEST_CASE("at least one processor is usable") { CHECK(usable_processors() >= 1); }

}  // namespace usable_processors_test
}  // namespace stepop
