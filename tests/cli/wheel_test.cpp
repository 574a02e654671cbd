// The wheel in a fresh virtual environment. Its torch, numpy and h5py are links to those of the
// tree's own environment, so that nothing is downloaded; pip still checks that they are what the
// wheel asks for. That another machine has no -dev packages is checked by what is linked.
#include <doctest/doctest.h>
#include <torch/version.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "runtime/train/distributed/world.h"
#include "tests/cli/command.h"

namespace stepop {
namespace wheel_test {

namespace fs = std::filesystem;

struct Environment {
  ScratchFolder folder;
  std::string bin = folder.path("fresh/bin");
  std::string site;

  Environment() {
    const auto made = run_in(folder, R"(set -e
      venv=')" STEPOP_SOURCE_DIR R"(/.venv'
      STEPOP_BUILD=')" STEPOP_BINARY_DIR R"(' $venv/bin/python3 -B \
        ')" STEPOP_SOURCE_DIR R"(/cmake/wheel/backend.py' dist >&2
      $venv/bin/python3 -m venv --without-pip fresh
      site=$(echo fresh/lib/python3*/site-packages)
      for part in $venv/lib/python3*/site-packages/*; do
        case $(basename $part) in pip|pip-*|stepop*) ;; *) ln -s $part $site/ ;; esac
      done
      unset PIP_FIND_LINKS PIP_EXTRA_INDEX_URL PYTHONPYCACHEPREFIX
      PIP_CONFIG_FILE=/dev/null $venv/bin/python3 -m pip --python fresh/bin/python3 install \
        --quiet --disable-pip-version-check --no-index dist/stepop-*.whl >&2
      echo -n $site)");
    if (made.exit_code != 0) throw std::runtime_error(made.err);
    site = folder.path(made.out);
  }

  CommandResult run(const std::string& line) const {
    return run_in(folder, "unset -f stepop; export PATH='" + bin +
                              "':$PATH STEPOP_CACHE=\"$PWD/cache\"\n" + line);
  }
};

/// One for all cases: it holds a precompiled header.
const Environment& fresh() {
  static const Environment environment;
  return environment;
}

/// Makes one/ unless it is there: its code is compiled once for the cases below.
const std::string kInOne = "{ [ -d one ] || stepop new one; } && cd one && ";

TEST_CASE("a wheel in a fresh environment trains and evaluates code of your own") {
  const auto result =
      fresh().run(kInOne + "stepop -n first -b one.yaml -t --num_steps 5 --logs trained");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  const std::string run = only_run(fresh().folder, "one/trained");
  CHECK(fs::exists(fresh().folder.path(run + "/train/checkpoints/model-5.safetensors")));

  const auto read = fresh().run("python3 -c \"import stepop.eval; print(stepop.eval.open('" + run +
                                "').outputs['logits'].shape)\"");
  CHECK_MESSAGE(read.exit_code == 0, read.err);
  CHECK(read.out == "(600, 3)\n");
}

/// The lines below "in your own code:".
std::string own_lines(const std::string& err) {
  const std::string before = "\nin your own code:\n";
  const size_t begin = err.find(before);
  if (begin == std::string::npos) return err;
  std::string lines;
  size_t at = begin + before.size();
  while (err.compare(at, 2, "  ") == 0) {
    const size_t end = err.find('\n', at);
    lines += err.substr(at, end + 1 - at);
    at = end + 1;
  }
  return lines;
}

TEST_CASE("with a wheel an error names the lines of your own code alone, by any compiler") {
  for (const std::string compiler : {"g++", "clang++-19", "clang++"}) {
    if (run_in(fresh().folder, "command -v " + compiler).exit_code != 0) continue;
    CAPTURE(compiler);
    const auto failed = [&](const std::string& change, const std::string& more) {
      const auto result = fresh().run(
          kInOne + "export STEPOP_CXX=" + compiler + "; sed '" + change + "' one.cpp > bad.cpp; " +
          "stepop -n bad -b one.yaml -t --code '[bad.cpp]' --logs bad " + more +
          "; { grep -n 'here [*]/' bad.cpp || grep -n 'cross_entropy(' bad.cpp; } | sed 's/:.*//'");
      return std::pair(own_lines(result.err),
                       result.out.substr(result.out.rfind('\n', result.out.size() - 2) + 1));
    };
    const auto [of_step_op, line] = failed("", "--model/classes 2");
    CHECK(of_step_op == "  bad.cpp:" + line.substr(0, line.size() - 1) + ": in One::step_op\n");
    const auto [of_train_op, here] = failed(
        "s|update_.step(loss);|update_.step(loss); (void)logits.t().matmul(logits.t()); /* here "
        "*/|",
        "");
    CHECK(of_train_op.starts_with("  bad.cpp:" + here.substr(0, here.size() - 1) + ": in "));
    CHECK(of_train_op.find(".h:") == std::string::npos);
    CHECK(of_train_op.find("_Z") == std::string::npos);
    CHECK(std::count(of_train_op.begin(), of_train_op.end(), '\n') == 1);
    const auto [of_forward, there] = failed(
        "s|return layers_->forward(point);|return layers_->forward(point.matmul(point)); /* here "
        "*/|",
        "");
    CAPTURE(of_forward);
    CHECK(of_forward.starts_with("  bad.cpp:" + there.substr(0, there.size() - 1) + ": in "));
    CHECK(of_forward.find("forward\n") != std::string::npos);
    CHECK(of_forward.find(".h:") == std::string::npos);
  }
}

TEST_CASE("with a wheel Python trains by the program beside its package") {
  const auto result = fresh().run(R"py(stepop new called && cd called && python3 - <<'END'
import stepop
run = stepop.train("called.yaml", {"num_steps": 3}, name="first", quiet=True)
print(run.state, run.step, run.starts[0].record["program"] == stepop.program)
END)py");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out.ends_with("ended 3 True\n"));
}

TEST_CASE("the pages of a wheel link to what is there, and call the program by its name") {
  const auto found = fresh().run(R"py(python3 - <<'END'
import re, pathlib
from importlib.util import find_spec
share = pathlib.Path(find_spec("stepop").origin).parent / "share/stepop"
pages = list(share.rglob("*.md"))
print(len(pages) > 40)
for page in pages:
    text = page.read_text()
    if re.search(r"build/stepop(?![_a-z])", text):
        print(page.relative_to(share), "says build/stepop")
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    for link in re.findall(r"\]\(([^)#]+)", prose):
        if not link.startswith("http") and not (page.parent / link).exists():
            print(page.relative_to(share), "links to", link)
END)py");
  CHECK_MESSAGE(found.exit_code == 0, found.err);
  CHECK(found.out == "True\n");
}

TEST_CASE("the first hour's line copies the examples of a wheel, and without it they are named") {
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/FIRST_HOUR.md");
  const size_t begin = page.find("\ncp -r $(python3 ") + 1;
  const auto missed = fresh().run("mkdir hour && cd hour && stepop -n a -b configs/digits.yaml -t");
  CHECK(
      missed.err.starts_with("stepop: cannot read configs/digits.yaml: No such file or directory; "
                             "the one that comes with stepop is /"));
  CHECK(missed.err.ends_with("/share/stepop/configs/digits.yaml\n"));
  const auto copied =
      fresh().run("cd hour && " + page.substr(begin, page.find('\n', begin) - begin) +
                  " && stepop -b configs/digits.yaml -t --check");
  CHECK_MESSAGE(copied.exit_code == 0, copied.err);
}

TEST_CASE("a wheel trains in several processes, when it was built with Gloo") {
  const auto result = fresh().run(
      kInOne + "stepop -n two -b one.yaml -t --num_steps 4 --processes 2 --logs in_two");
  if (!World::can_join()) {
    CHECK(result.exit_code == 2);
    return;
  }
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  const std::string run = only_run(fresh().folder, "one/in_two");
  CHECK(fs::exists(fresh().folder.path(run + "/train/checkpoints/model-4.safetensors")));
}

TEST_CASE("with a wheel the guide's program is built, and applies a network that was trained") {
  const auto result =
      fresh().run("cp -r '" STEPOP_SOURCE_DIR
                  "/tests/cli/guide' guide && cd guide && "
                  "printf 'abcde\\nfghij\\nklmno\\npqrst\\nuvwxyz\\nbanana\\n' >words.txt && "
                  "stepop -n words -b words.yaml -t >&2 && "
                  "cmake -B build -DCMAKE_PREFIX_PATH=\"$(python3 -c 'import stepop; "
                  "print(stepop.cmake_prefix_path)')\" >&2 && cmake --build build >&2 && "
                  "build/apply logs/*/train/checkpoints/latest.safetensors");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out == "aeiou\n");
}

TEST_CASE("a wheel asks for the LibTorch that it was built with") {
  const auto result = fresh().run(
      "python3 -c \"import importlib.metadata as m; print(*m.requires('stepop'), sep='\\n')\"");
  CHECK(result.out.starts_with("torch==" TORCH_VERSION "\n"));
}

TEST_CASE("a wheel takes from the system the C library and the compiler's own, and no others") {
  const auto result =
      fresh().run("ldd '" + fresh().site + "/stepop/bin/stepop' '" + fresh().site +
                  "/stepop/lib/stepop_program/stepop' '" + fresh().site +
                  "/stepop/lib/libstepop.so' '" + fresh().site +
                  "/stepop/lib/stepop_probe_hdf5' | grep -v \"$PWD/\" | sed 's/ .*//' | "
                  "grep -vE '(linux-vdso|ld-linux-.*|lib(c|m|dl|rt|pthread|resolv|util|"
                  "stdc[+][+]|gcc_s))[.]so'");
  CHECK(result.out == "");
}

TEST_CASE("a wheel has its licence, and a licence text of every library in it") {
  const auto found = fresh().run(R"py(python3 - <<'END'
import importlib.metadata, pathlib, re
from importlib.util import find_spec
stepop = importlib.metadata.distribution("stepop")
licences = pathlib.Path(stepop.locate_file(f"stepop-{stepop.version}.dist-info/licenses"))
named = set(stepop.metadata.get_all("License-File"))
there = {str(path.relative_to(licences)) for path in licences.rglob("*") if path.is_file()}
print(named == there, stepop.metadata["License-Expression"])
print((licences / "LICENSE").read_text().startswith("MIT License"))
texts = licences / "LICENSES"
packages = dict(line.split() for line in (texts / "libraries.txt").read_text().splitlines())
libraries = [path.name for path in (pathlib.Path(find_spec("stepop").origin).parent / "lib").glob("*.so*")]
print(len(libraries) > 5)
for library in set(libraries) - {"libstepop.so", "libstepop_nccl.so"}:
    text = (texts / packages[library] / "copyright").read_text()
    for name in re.findall(r"/usr/share/common-licenses/([A-Z]\w+(?:-[\d.]*\d)?)", text):
        if not (texts / "common" / name).stat().st_size:
            print(library, name)
END)py");
  CHECK_MESSAGE(found.exit_code == 0, found.err);
  CHECK(found.out == "True MIT AND CC-BY-4.0\nTrue\nTrue\n");
}

TEST_CASE("nothing of a wheel names the source tree") {
  const auto found = fresh().run(
      "cd '" + fresh().site +
      "' && grep -rlI '" STEPOP_SOURCE_DIR
      "' stepop stepop_eval.py stepop-*.dist-info; "
      "readelf -d stepop/bin/stepop stepop/lib/stepop_program/stepop stepop/lib/libstepop.so "
      "stepop/lib/stepop_probe_hdf5 | grep PATH | grep '" STEPOP_SOURCE_DIR "'");
  CHECK(found.out == "");
}

TEST_CASE("a wheel whose torch is gone says so") {
  const auto result = fresh().run("cd '" + fresh().site +
                                  "' && mv torch away; stepop list; s=$?; mv away torch; exit $s");
  CHECK(result.exit_code == 1);
  CHECK_MESSAGE(result.err.starts_with("stepop: " + fresh().site +
                                       "/torch is missing, and LibTorch with it: "),
                result.err);
}

}  // namespace wheel_test
}  // namespace stepop
