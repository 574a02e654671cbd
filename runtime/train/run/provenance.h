#pragma once

#include <c10/core/Device.h>

#include <string>

namespace stepop {

/// `main a1b2c3d, clean`, of the git repository around the current folder; `none` without one.
std::string git_state();

std::string host_name();

/// When the newest of the program and of the libraries that it has loaded was written, in UTC:
/// `2026-11-21T10:00:00.123456789`. Another build gives another.
std::string program_time();

/// The same of the program and libstepop.so alone, so that the user's own code does not count.
std::string stepop_time();

/// What the bits of a training depend on besides its config and its seed, as JSON: the build, the
/// version of LibTorch, the kind of device, the processor's instructions, threads, oneDNN. To be
/// called when everything that a config names was loaded and `apply_backend_settings` was called.
///
///   {"stepop": "0.1.0", "build": "2026-11-21T10:00:00.123456789", "LibTorch": "2.13.0",
///    "device": "cpu", "instructions": "AVX2", "threads": 4, "oneDNN": "on"}
std::string build_info(const c10::Device& device);

/// `the run was on 4 threads, this start has 2 threads: the bits may differ from those of an
/// undisturbed run`; empty when nothing differs, or when `before` is empty or cannot be read, as
/// that of an older checkpoint.
std::string describe_change_of_machine(const std::string& before, const std::string& now);

}  // namespace stepop
