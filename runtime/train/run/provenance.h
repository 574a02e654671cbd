#pragma once

#include <c10/core/Device.h>

#include <string>

namespace stepop {

/// The state of the git repository around the current folder, `main a1b2c3d, clean`; `none` without
/// one.
std::string git_state();

std::string host_name();

/// The modification time, in UTC, of the newest file among the program and its loaded libraries:
/// `2026-11-21T10:00:00.123456789`. It changes with every build.
std::string program_time();

/// The same for the program and libstepop.so alone, so that the user's own code does not count.
std::string stepop_time();

/// What the bits of a training depend on besides its config and its seed, as JSON: the build, the
/// version of LibTorch, the kind of device, the processor's instructions, threads, oneDNN. Called
/// after everything in the config was loaded, and after `apply_backend_settings`.
///
///   {"stepop": "0.1.0", "build": "2026-11-21T10:00:00.123456789", "LibTorch": "2.13.0",
///    "device": "cpu", "instructions": "AVX2", "threads": 4, "oneDNN": "on"}
std::string build_info(const c10::Device& device);

/// `the run was on 4 threads, this start has 2 threads: the bits may differ from those of an
/// undisturbed run`; empty when nothing differs, and when `before` is empty or unreadable, as in
/// older checkpoints.
std::string describe_change_of_machine(const std::string& before, const std::string& now);

}  // namespace stepop
