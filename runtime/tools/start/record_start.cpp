#include "runtime/tools/start/record_start.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "runtime/core/programs/program_file.h"
#include "runtime/train/run/data_files.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace fs = std::filesystem;

std::unique_ptr<StartRecorder> record_start(const RunDirectory& directory, const std::string& mode,
                                            StartRecord start, Session& session,
                                            const std::set<std::string>& variables) {
  std::error_code failed;
  start.folder = fs::current_path(failed).string();
  start.program = program_file().string();
  start.build = stepop_time();
  start.host = host_name();
  start.step = session.position().global_step;
  const std::string run = fs::absolute(directory.root(), failed).lexically_normal().string();
  if (!start.checkpoint.empty()) {
    start.checkpoint = fs::absolute(start.checkpoint, failed).lexically_normal().string();
    const bool is_own = start.checkpoint.starts_with(run + "/");
    if (is_own) start.checkpoint.erase(0, run.size() + 1);
  }
  start.made_by = session.made_by();
  start.libraries = library_versions();
  start.machine = machine_facts();
  start.environment = environment_that_matters(start.hidden);
  for (const auto& name : variables) {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && may_be_secret(name)) {
      start.hidden.push_back(name);
    } else {
      start.config_variables.set(name, value != nullptr ? std::optional(value) : std::nullopt);
    }
  }
  StartRecorder::Work work{.git_folders = {start.folder},
                           .checksums = read_data_checksums(session.config())};
  for (const auto& [key, path] : session.config().opened()) {
    const bool is_code = key == "code" || key.starts_with("code/");
    if (is_code) work.git_folders.push_back(fs::path(path).parent_path().string());
    // The run has copies of sources.
    const bool is_copied =
        is_code && fs::path(path).filename().string().find(".so") == std::string::npos;
    if (!is_copied) work.data.emplace(key, path);
  }
  const std::string stem = fmt::format("{}/{}_{}", directory.configs(), mode, start.time);
  auto recorder = std::make_unique<StartRecorder>(stem, run, std::move(start), std::move(work));
  recorder->set_hurry([] { return SignalGuard::received() != 0; });
  return recorder;
}

}  // namespace stepop
