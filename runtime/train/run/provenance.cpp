#include "runtime/train/run/provenance.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <torch/version.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/system/look_at_data.h"
#include "runtime/core/system/stepop_library.h"

namespace stepop {
namespace {

/// The output of a command without its final newline; empty when the command failed.
std::string output_of(std::vector<std::string> command) {
  try {
    const ChildResult result = run_child(std::move(command));
    if (result.exit_code != 0 || result.signal != 0) return "";
    return result.out.substr(0, result.out.find_last_not_of('\n') + 1);
  } catch (const Error&) {  // the program does not exist
    return "";
  }
}

constexpr const char* kProgram = "/proc/self/exe";

/// Sets `time` to the later of `time` and the file's modification time. A path that is no file,
/// such as the kernel's own object, has no time.
void take_newer(const char* path, timespec& time) {
  struct stat status {};
  if (::stat(path, &status) != 0) return;
  const timespec& its = status.st_mtim;
  if (std::tie(its.tv_sec, its.tv_nsec) > std::tie(time.tv_sec, time.tv_nsec)) time = its;
}

/// An entry in readable form: `4 threads`, `oneDNN on`, `LibTorch 2.13.0`.
std::string entry_text(const std::string& key, const nlohmann::ordered_json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : write_json(value);
  if (key == "threads") return fmt::format("{} thread{}", text, text == "1" ? "" : "s");
  if (key == "build") return "a build of " + text;
  return key + " " + text;
}

}  // namespace

std::string git_state() {
  const std::string commit = output_of({"git", "rev-parse", "--short", "HEAD"});
  if (commit.empty()) return "none";
  const std::string branch = output_of({"git", "rev-parse", "--abbrev-ref", "HEAD"});
  const std::string changes = output_of({"git", "status", "--porcelain"});
  return fmt::format("{} {}, {}", branch, commit, changes.empty() ? "clean" : "with changes");
}

std::string program_time() {
  timespec newest{};
  const auto look_at = [](dl_phdr_info* object, size_t, void* data) {
    // The program itself has an empty name here.
    const char* path = *object->dlpi_name != 0 ? object->dlpi_name : kProgram;
    take_newer(path, *static_cast<timespec*>(data));
    return 0;
  };
  dl_iterate_phdr(look_at, &newest);
  return utc_time(newest);
}

std::string stepop_time() {
  timespec newest{};
  take_newer(kProgram, newest);
  take_newer(stepop_library().c_str(), newest);
  return utc_time(newest);
}

std::string host_name() {
  std::array<char, 256> buffer{};
  return gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "unknown";
}

std::string build_info(const c10::Device& device) {
  const at::Context& context = at::globalContext();
  const nlohmann::ordered_json entries = {
      {"stepop", STEPOP_VERSION},
      {"build", program_time()},
      {"LibTorch", TORCH_VERSION},
      {"device", device.is_cpu() ? "cpu" : c10::DeviceTypeName(device.type(), /*lower_case=*/true)},
      {"instructions", at::get_cpu_capability()},
      {"threads", at::get_num_threads()},
      {"oneDNN", context.userEnabledMkldnn() ? "on" : "off"}};
  return write_json(entries);
}

std::string describe_change_of_machine(const std::string& before, const std::string& now) {
  using Json = nlohmann::ordered_json;
  const Json old = try_read_ordered_json(before);
  const Json current = try_read_ordered_json(now);
  if (!old.is_object() || !current.is_object()) return "";
  std::string was;
  std::string is;
  for (const auto& [key, value] : current.items()) {
    if (!old.contains(key) || old[key] == value) continue;
    was += (was.empty() ? "" : ", ") + entry_text(key, old[key]);
    is += (is.empty() ? "" : ", ") + entry_text(key, value);
  }
  if (was.empty()) return "";
  return fmt::format(
      "the run was on {}, this start has {}: the bits may differ from those of an undisturbed run",
      was, is);
}

}  // namespace stepop
