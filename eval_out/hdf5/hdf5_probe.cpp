#include "eval_out/hdf5/hdf5_probe.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/system/stepop_library.h"

namespace stepop {
namespace {

/// Seconds of the processor; large files have more to walk through.
constexpr uintmax_t kMostSeconds = 5;
constexpr uintmax_t kBytesPerSecond = 100'000'000;

Error harmful(const std::string& path, const std::string& what) {
  return Error(fmt::format("cannot read {}: the file is damaged, or made to harm: reading it {}",
                           path, what));
}

ChildResult run_program(const std::string& path, uintmax_t seconds, double bytes,
                        const InterruptCheck& interrupt) {
  const std::string program = stepop_library().replace_filename("stepop_probe_hdf5").string();
  std::string reason;
  try {
    ChildResult result = run_child(
        {program, path, std::to_string(seconds), fmt::format("{:.0f}", bytes)}, interrupt);
    if (result.err.empty()) return result;
    reason = result.err;  // of what loads it; its own goes nowhere
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    reason = error.what();
  }
  throw Error(
      fmt::format("cannot read {}: no program can try whether it does harm: {}\n{} is a part "
                  "of stepop, and needs memory, a process and files to be open",
                  path, reason.substr(0, reason.find('\n')), program));
}

}  // namespace

void probe_hdf5(const std::string& path, const InterruptCheck& interrupt) {
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  const uintmax_t seconds = kMostSeconds + (failed ? 0 : size / kBytesPerSecond);
  const double bytes = unpack_limit();
  const ChildResult result = run_program(path, seconds, bytes, interrupt);
  if (result.signal == SIGXCPU) {
    throw harmful(path, fmt::format("takes the HDF5 library more than {} s", seconds));
  }
  if (result.signal != 0) {
    throw harmful(path, fmt::format("ends the HDF5 library with the signal {} ({})", result.signal,
                                    ::strsignal(result.signal)));
  }
  if (result.out == kProbePassed) return;
  if (result.out.starts_with(kProbeRefused)) {
    // The same steps could crash here: what the library does after a failure is not always sound.
    const std::string message = result.out.substr(std::string(kProbeRefused).size());
    throw Error(message.find(path) == std::string::npos ? path + ": " + message : message);
  }
  if (result.out == kProbeNoMemory) {
    throw harmful(path, fmt::format("takes more than {} of memory; if you know where it is from, "
                                    "STEPOP_UNPACK_LIMIT=2e10 in the environment allows more",
                                    size_text(bytes)));
  }
  throw harmful(path, "crashes the HDF5 library");  // reported by a sanitizer
}

}  // namespace stepop
