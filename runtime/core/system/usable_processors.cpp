#include "runtime/core/system/usable_processors.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace stepop {
namespace {

/// Where a hierarchy of control groups is mounted, and which of its groups is the top of the mount.
struct GroupMount {
  std::string folder;
  std::string top;
  bool is_version_2 = false;
};

bool has_item(std::string_view list, std::string_view item) {
  std::stringstream items{std::string(list)};
  for (std::string each; std::getline(items, each, ',');) {
    if (each == item) return true;
  }
  return false;
}

/// The mounts that may limit processors, from lines such as
/// `36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct`.
std::vector<GroupMount> group_mounts(const std::string& root) {
  std::vector<GroupMount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::string skipped, top, folder, type, device, options;
    std::stringstream(line) >> skipped >> skipped >> skipped >> top >> folder;
    std::stringstream(line.substr(separator + 3)) >> type >> device >> options;
    if (type == "cgroup2" || (type == "cgroup" && has_item(options, "cpu"))) {
      mounts.push_back({folder, top, type == "cgroup2"});
    }
  }
  return mounts;
}

/// The process's group in the hierarchy of a mount, from lines such as `4:cpu,cpuacct:/docker/1f`
/// and `0::/user.slice`.
std::string own_group(const std::string& root, bool is_version_2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_version_2 ? controllers.empty() : has_item(controllers, "cpu")) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

/// The quota of one group; nothing without one.
std::optional<ProcessorQuota> quota_of(const std::string& root, const std::string& folder,
                                       bool is_version_2) {
  double quota = 0;
  double period = 0;
  const std::string file = folder + (is_version_2 ? "/cpu.max" : "/cpu.cfs_quota_us");
  std::ifstream limit(root + file);
  limit >> quota;  // "max" and a missing file leave 0
  if (is_version_2) {
    limit >> period;
  } else {
    std::ifstream(root + folder + "/cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return ProcessorQuota{quota / period, file};
}

}  // namespace

std::optional<ProcessorQuota> find_processor_quota(const std::string& root) {
  std::optional<ProcessorQuota> least;
  for (const GroupMount& mount : group_mounts(root)) {
    std::string group = own_group(root, mount.is_version_2);
    // A container sees the mount of its own group, while its name counts from the top of all.
    if (mount.top != "/" && group.starts_with(mount.top)) group.erase(0, mount.top.size());
    if (group == "/") group.clear();
    for (;; group.erase(group.rfind('/'))) {
      const auto found = quota_of(root, mount.folder + group, mount.is_version_2);
      if (found && (!least || found->processors < least->processors)) least = found;
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

namespace {

struct Usable {
  int64_t processors = std::max(1U, std::thread::hardware_concurrency());
  std::string limit = {};

  Usable() {
    const auto quota = find_processor_quota();
    if (!quota || quota->processors >= static_cast<double>(processors)) return;
    processors = std::max<int64_t>(1, static_cast<int64_t>(quota->processors));
    limit = fmt::format("a quota of {} ({})", quota->processors, quota->file);
  }
};

const Usable& usable() {
  static const Usable found;
  return found;
}

}  // namespace

int64_t usable_processors() { return usable().processors; }

std::string processor_limit() { return usable().limit; }

}  // namespace stepop
