#include "runtime/train/distributed/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

namespace stepop {
namespace {

namespace fs = std::filesystem;

/// More than any Linux kernel supports.
constexpr int kMostProcessors = 8192;

class ProcessorSet {
 public:
  ProcessorSet() : set_(CPU_ALLOC(kMostProcessors)) { CPU_ZERO_S(size(), set_); }
  ~ProcessorSet() { CPU_FREE(set_); }
  ProcessorSet(const ProcessorSet&) = delete;
  ProcessorSet& operator=(const ProcessorSet&) = delete;

  static size_t size() { return CPU_ALLOC_SIZE(kMostProcessors); }
  cpu_set_t* get() { return set_; }
  bool has(int number) const { return CPU_ISSET_S(number, size(), set_); }
  void add(int number) { CPU_SET_S(number, size(), set_); }

 private:
  cpu_set_t* set_;
};

int read_number(const std::string& path) {
  int number = 0;
  std::ifstream(path) >> number;  // 0 if the file is missing
  return number;
}

/// Writes `0-3,8`.
std::string text_of_numbers(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  std::string text;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

std::vector<Processor> own_processors() {
  ProcessorSet allowed;
  if (::sched_getaffinity(0, ProcessorSet::size(), allowed.get()) != 0) return {};
  std::vector<Processor> processors;
  for (int number = 0; number < kMostProcessors; ++number) {
    if (!allowed.has(number)) continue;
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", number);
    processors.push_back({.number = number,
                          .package = read_number(topology + "physical_package_id"),
                          .core = read_number(topology + "core_id")});
  }
  return processors;
}

std::vector<std::vector<int>> processor_shares(std::vector<Processor> processors, int count) {
  const auto size = static_cast<int>(processors.size());
  if (size < count) return {};
  std::ranges::sort(processors, {}, [](const Processor& each) {
    return std::tuple(each.package, each.core, each.number);
  });
  std::vector<std::vector<int>> shares(static_cast<size_t>(count));
  for (int i = 0; i < size; ++i) {
    const auto share = static_cast<int64_t>(i) * count / size;
    shares[static_cast<size_t>(share)].push_back(processors[static_cast<size_t>(i)].number);
  }
  return shares;
}

std::string bind_to_share(const Place& place) {
  const auto shares = processor_shares(own_processors(), place.local_size);
  if (shares.empty()) return {};
  const std::vector<int>& own = shares.at(static_cast<size_t>(place.local_rank));
  ProcessorSet set;
  for (const int number : own) set.add(number);
  std::error_code ignored;
  for (const auto& thread : fs::directory_iterator("/proc/self/task", ignored)) {
    const int id = std::atoi(thread.path().filename().c_str());
    ::sched_setaffinity(id, ProcessorSet::size(), set.get());  // it may have ended
  }
  return text_of_numbers(own);
}

}  // namespace stepop
