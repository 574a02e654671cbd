#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "tests/cli/code_run.h"

namespace stepop {
namespace install_test {

namespace fs = std::filesystem;

/// An installation that was moved afterwards. Its folder is on a disk with room for LibTorch.
struct Installation {
  ScratchFolder folder;
  std::string prefix = folder.path("moved");
  CommandResult installed;
  CommandResult prepared;

  Installation() {
    // Clang's precompiled headers remember their folder, so those of the first one would be of no
    // use: its compiler fails.
    installed = run_in(folder, "STEPOP_CXX=false cmake --install '" STEPOP_BINARY_DIR
                               "' --prefix first && mv first moved");
    if (installed.exit_code != 0) throw std::runtime_error(installed.out + installed.err);
    prepared = run_in(folder, "moved/bin/stepop prepare");
    if (prepared.exit_code != 0) throw std::runtime_error(prepared.out + prepared.err);
  }

  /// Runs a line where the source tree, with its build and its LibTorch, cannot be seen: behind an
  /// empty file system, which only root can mount. For others it is merely not named.
  CommandResult run(const std::string& line) const {
    const std::string hide =
        "if unshare -m true 2>/dev/null; then hide='mount -t tmpfs none \"" STEPOP_SOURCE_DIR
        "\" && ! test -e \"" STEPOP_SOURCE_DIR "/CMakeLists.txt\" &&'; run='unshare -m'; fi\n";
    return run_in(folder, "unset -f stepop; export PATH='" + prefix +
                              "/bin':$PATH STEPOP_CACHE=\"$PWD/cache\"\n" + hide +
                              "$run bash -c \"$hide $(cat <<'LINE'\n" + line + "\nLINE\n)\"");
  }
};

/// One for all cases: it holds a copy of LibTorch, and a precompiled header.
const Installation& installed() {
  static const Installation installation;
  return installation;
}

TEST_CASE("an installation precompiles the headers, and is none the worse when that fails") {
  CHECK(contains(installed().installed.out, "Precompiling the headers for code of your own\n"));
  CHECK(contains(installed().installed.err, "false --version failed"));
  CHECK(contains(installed().installed.err, "stepop prepare failed (1)"));
  CHECK(contains(installed().prepared.out, "precompiled headers of this installation"));
}

TEST_CASE("nothing of an installation names the source tree") {
  const auto found =
      run_in(installed().folder,
             "grep -rlI '" STEPOP_SOURCE_DIR
             "' moved/bin moved/share moved/lib/cmake "
             "moved/lib/libstepop.json moved/include/stepop; "
             "readelf -d moved/bin/stepop moved/lib/stepop_program/stepop moved/lib/libstepop.so "
             "moved/lib/stepop_probe_hdf5 | grep PATH | "
             "grep '" STEPOP_SOURCE_DIR "'");
  CHECK(found.out == "");
}

TEST_CASE("an installation has its licence, and those of the headers and the LibTorch in it") {
  const auto text = [](const std::string& path) {
    return read_bytes(installed().prefix + "/" + path);
  };
  CHECK(text("share/stepop/LICENSE") == read_bytes(STEPOP_SOURCE_DIR "/LICENSE"));
  const std::string copyright = text("share/doc/stepop/copyright");
  CHECK(copyright.starts_with("Upstream-Name: stepop\n"));
  CHECK(copyright.find("Permission is hereby granted, free of charge") != std::string::npos);
  CHECK(text("share/stepop/LICENSES/libraries.txt").find("json.hpp ") != std::string::npos);
  const auto torch =
      run_in(installed().folder,
             "! test -e moved/lib/stepop/torch || "
             "test -s moved/share/stepop/LICENSES/torch-*.dist-info/licenses/LICENSE");
  CHECK(torch.exit_code == 0);
}

TEST_CASE("without the source tree one file of one's own trains, with every public header") {
  std::string includes;
  for (const char* header : {"audio", "checkpoint", "extensible", "load_network", "loss_model",
                             "losses", "metrics", "safetensors"}) {
    includes += fmt::format("\\n#include <stepop/{}.h>", header);
  }
  const auto result =
      installed().run("stepop new one && cd one && sed -i 's|#include <stepop/stepop.h>|&" +
                      includes + "|' one.cpp && stepop -n first -b one.yaml -t --num_steps 5");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.err == "compiling one.cpp\n");  // its header came precompiled
  const std::string run = only_run(installed().folder, "one/logs");
  CHECK(fs::exists(installed().folder.path(run + "/train/checkpoints/model-5.safetensors")));
}

TEST_CASE("without the source tree a project is built with CMake, tested and trains") {
  const auto result = installed().run(
      "stepop new many --project --template regression && cd many && "
      "cmake -B build -DCMAKE_PREFIX_PATH='" +
      installed().prefix +
      "' && cmake --build build && ctest --test-dir build --output-on-failure && "
      "stepop -n first -b configs/many.yaml -t --num_steps 5");
  CHECK_MESSAGE(result.exit_code == 0, result.out, result.err);
  const std::string run = only_run(installed().folder, "many/logs");
  CHECK(fs::exists(installed().folder.path(run + "/train/checkpoints/model-5.safetensors")));

  // The same library, as one of another version would be.
  const auto other = installed().run(
      "cd many && sed -i 's/stepop-built-against:stepop 0/stepop-built-against:stepop 9/' "
      "build/libmany.so && stepop -n other -b configs/many.yaml -t");
  CHECK(other.exit_code == 1);
  CHECK(other.err.starts_with("stepop: libmany.so: built against stepop 9."));
  CHECK(other.err.ends_with(": build it again\n"));
}

TEST_CASE("without the source tree the config of the demo trains") {
  const auto result = installed().run(
      "stepop -n digits -b moved/share/stepop/configs/digits.yaml -t --num_steps 3");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
}

}  // namespace install_test
}  // namespace stepop
