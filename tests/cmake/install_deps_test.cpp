// cmake/install_deps.sh, on a system whose packages and whose pip are made up: what it would
// install.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/cli/code_run.h"

namespace stepop {
namespace install_deps_test {

/// A tree in which nothing is installed. $INSTALLED are packages as dpkg-query prints them, $THERE
/// the names of those that can be installed, $INDEX a URL in the place of PyTorch's. What is called
/// is written to `called`.
struct Tree {
  ScratchFolder folder;

  Tree() {
    for (const char* file : {"install_deps.sh", "libtorch.cmake"}) {
      folder.write(std::string("cmake/") + file,
                   read_bytes(std::string(STEPOP_SOURCE_DIR "/cmake/") + file));
    }
    folder.write("bin/cmake", "#!/bin/bash\n");  // no LibTorch of the user's
    folder.write("bin/dpkg-query", "#!/bin/bash\nprintf '%s\\n' \"$INSTALLED\"\n");
    folder.write("bin/apt-cache", "#!/bin/bash\nprintf '%s\\n' $THERE\n");
    folder.write("bin/apt-get", "#!/bin/bash\necho \"apt-get $*\" >>called\n");
    folder.write("bin/sudo", "#!/bin/bash\nexec \"$@\"\n");
    folder.write(".venv/bin/python3",
                 "#!/bin/bash\ncase \"$*\" in\n"
                 "  '-m pip --version') ;;\n"
                 "  '-m pip install'*) echo \"pip ${*:4}\" >>called; exit $PIP ;;\n"
                 "  *) exec python3 \"$1\" \"$2\" \"$INDEX\" \"$4\" ;;\n"
                 "esac\n");
  }

  CommandResult run(const std::string& variables) const {
    return run_in(folder,
                  "chmod +x bin/* .venv/bin/python3; rm -f called; unset STEPOP_TORCH; "
                  "export PATH=$PWD/bin:$PATH " +
                      variables + "\nbash cmake/install_deps.sh build");
  }
  std::string called() const {
    const std::string path = folder.path("called");
    return std::filesystem::exists(path) ? read_bytes(path) : "";
  }
  /// What apt-get was to install.
  std::string packages(const std::string& variables) const {
    CHECK(run("STEPOP_TORCH=cuda " + variables).exit_code == 0);
    const std::string begin = "apt-get install -y -qq --no-install-recommends ";
    const std::string text = called();
    const size_t at = text.find(begin);
    if (at == std::string::npos) return "";
    return text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
  }
  /// What pip was to install, and what was said.
  std::string pip(const std::string& variables, std::string* said = nullptr) const {
    const CommandResult result = run("INSTALLED=\"$(cat installed)\" " + variables);
    if (said != nullptr) *said = result.err;
    return called();
  }
  /// As if the system had all that is needed.
  void install_packages() const {
    std::string all = "installed:clang-18, \n";
    std::istringstream names(packages("THERE=clang-19"));
    for (std::string name; names >> name;) all += "installed:" + name + ", \n";
    folder.write("installed", all);
  }
};

constexpr const char* kIndex = "INDEX=data:,torch-2.13.0%252Bcpu-cp311-linux_$(uname -m) ";
constexpr const char* kOldIndex = "INDEX=data:,torch-2.12.0%252Bcpu-cp311-linux_$(uname -m) ";
constexpr const char* kOtherIndex = "INDEX=data:,torch-2.13.0%252Bcpu-cp311-linux_z80 ";
const std::string kPip = "pip --quiet --disable-pip-version-check --no-compile ";

TEST_CASE("a clang from 16 on is enough; else 19 is installed, or the newest that the system has") {
  const Tree tree;
  CHECK(contains(tree.packages("THERE='clang-14 clang-16 clang-19 clang-19-doc clang-22'"),
                 " clang-19 "));
  CHECK(contains(tree.packages("THERE='clang-9 clang-17 clang-18 clang-20'"), " clang-20 "));
  const std::string without = tree.packages("THERE='clang-14 clang-15'");
  CHECK(contains(without, "g++"));
  CHECK(!contains(without, "clang"));
  CHECK(!contains(tree.packages("THERE=clang-19 INSTALLED='installed:clang-18, '"), "clang"));
}

TEST_CASE("a package that another one provides is installed") {
  const Tree tree;
  tree.install_packages();
  std::string text = read_bytes(tree.folder.path("installed"));
  CHECK(tree.packages("INSTALLED=\"$(cat installed)\"") == "");
  const std::string own = "installed:libtcmalloc-minimal4, \n";
  const size_t at = text.find(own);
  REQUIRE(at != std::string::npos);
  text.erase(at, own.size());
  tree.folder.write("installed", text);
  CHECK(tree.packages("INSTALLED=\"$(cat installed)\"") == "libtcmalloc-minimal4");
  tree.folder.write("installed",
                    text + "installed:libtcmalloc-minimal4t64, libtcmalloc-minimal4 (= 2.16)\n");
  CHECK(tree.packages("INSTALLED=\"$(cat installed)\"") == "");
}

TEST_CASE("LibTorch for processors comes from PyTorch's index where that answers, and is 190 MB") {
  const Tree tree;
  tree.install_packages();
  std::string said;
  CHECK(tree.pip(std::string(kIndex) + "STEPOP_TORCH=cpu", &said) ==
        kPip + "--extra-index-url=https://download.pytorch.org/whl/cpu torch==2.13.0+cpu\n");
  CHECK(contains(said, "deps: LibTorch for processors, some 190 MB, of "));
  // An index without this version, without this machine, and none.
  for (const char* index : {kOldIndex, kOtherIndex, "INDEX=http://127.0.0.1:9 "}) {
    CHECK(tree.pip(std::string(index) + "STEPOP_TORCH=cpu", &said) == kPip + "torch==2.13.0\n");
    CHECK(contains(said, "whl/cpu does not answer or has none for "));
  }
}

TEST_CASE("LibTorch for GPUs comes with NVIDIA's driver, and another one by a variable") {
  const Tree tree;
  tree.install_packages();
  std::string said;
  CHECK(tree.pip(std::string(kIndex) + "STEPOP_TORCH=cuda", &said) == kPip + "torch==2.13.0\n");
  CHECK(contains(said, "deps: LibTorch for NVIDIA's GPUs, some 3 GB"));
  CHECK(tree.pip(std::string(kIndex) + "STEPOP_TORCH=torch==2.11.0") == kPip + "torch==2.11.0\n");
  CHECK(tree.pip(std::string(kIndex) + "STEPOP_TORCH=/a/torch.whl") == kPip + "/a/torch.whl\n");

  if (std::system("test -e /proc/driver/nvidia/version || command -v nvidia-smi >/dev/null") != 0) {
    CHECK(contains(tree.pip(kIndex), "torch==2.13.0+cpu\n"));
    tree.folder.write("bin/nvidia-smi", "#!/bin/bash\n");
  }
  CHECK(tree.pip(kIndex) == kPip + "torch==2.13.0\n");
}

TEST_CASE("where pip cannot install what was asked for, nothing else is installed") {
  const Tree tree;
  tree.install_packages();
  const std::string variables = "INSTALLED=\"$(cat installed)\" PIP=1 " + std::string(kIndex);
  for (const char* asked : {"torch==2.11.0", "cpu", "cuda"}) {
    CHECK(tree.run(variables + "STEPOP_TORCH=" + asked).exit_code == 1);
    CHECK(std::ranges::count(tree.called(), '\n') == 1);
  }
}

TEST_CASE("a LibTorch that is there stays, and is not changed for one of the other kind") {
  const Tree tree;
  tree.install_packages();
  const std::string packages = ".venv/lib/python3.11/site-packages/";
  tree.folder.write(packages + "torch-2.13.0+cpu.dist-info/INSTALLER", "pip\n");
  CHECK(tree.pip(kIndex) == "");
  CHECK(tree.pip(std::string(kIndex) + "STEPOP_TORCH=cpu") == "");
  const CommandResult other = tree.run("INSTALLED=\"$(cat installed)\" STEPOP_TORCH=cuda");
  CHECK(other.exit_code == 1);
  CHECK(other.err == "deps: STEPOP_TORCH is cuda, and " + packages +
                         "torch-2.13.0+cpu.dist-info is of the other kind: rm -r .venv build, and "
                         "again\n");
  CHECK(tree.called() == "");
}

}  // namespace install_deps_test
}  // namespace stepop
