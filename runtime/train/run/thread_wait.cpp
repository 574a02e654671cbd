#include "runtime/train/run/thread_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace stepop {
namespace {

constexpr const char* kPolicy = "OMP_WAIT_POLICY";
constexpr const char* kSpins = "GOMP_SPINCOUNT";

}  // namespace

Variables variables_of_thread_wait(const std::string& name) {
  if (name == "sleep") return {{kPolicy, "passive"}, {kSpins, std::nullopt}};
  if (name == "spin") return {{kPolicy, "active"}, {kSpins, std::nullopt}};
  if (name == "brief") return {{kPolicy, std::nullopt}, {kSpins, "1000"}};
  return {{kPolicy, std::nullopt}, {kSpins, std::nullopt}};
}

std::string read_thread_wait(const Config& config) {
  if (!config.has("thread_wait")) return {};
  auto name = config.get<std::string>("thread_wait");
  if (std::ranges::find(kThreadWaits, name) == std::end(kThreadWaits)) {
    throw config.error("thread_wait",
                       fmt::format("expected auto, sleep, brief or spin, found \"{}\"", name));
  }
  return name;
}

std::string own_thread_wait() {
  const auto is_set = [](const auto& variable) {
    const char* value = std::getenv(variable.first.c_str());
    return variable.second ? value != nullptr && *variable.second == value : value == nullptr;
  };
  for (const char* name : kThreadWaits) {
    if (std::ranges::all_of(variables_of_thread_wait(name), is_set)) return name;
  }
  return {};
}

}  // namespace stepop
