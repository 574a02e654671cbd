// What .github/workflows/release.yml checks before it builds anything.
#include <doctest/doctest.h>

#include <string>

#include "tests/cli/command.h"

namespace stepop {
namespace release_test {

/// A tree of version 1.2.0 whose changelog begins with `top`.
CommandResult check(const std::string& tag, const std::string& top,
                    const std::string& reader = "1.2.0") {
  const ScratchFolder folder;
  folder.write("CMakeLists.txt", "project(stepop VERSION 1.2.0 LANGUAGES C CXX\n");
  folder.write("eval_out/python/pyproject.toml", "[project]\nversion = \"" + reader + "\"\n");
  folder.write("CHANGELOG.md",
               "# Changelog\n\n" + top + "\n\n- It is new.\n\n## 1.1.0 — 2026-01-01\n\n- Old.\n");
  return run_in(folder, "mkdir .ci && cp '" STEPOP_SOURCE_DIR
                        "/.ci/check_release' .ci/ && "
                        ".ci/check_release " +
                            tag);
}

TEST_CASE(
    "a release whose tag, versions and changelog agree is allowed, and its changelog is printed") {
  const auto result = check("v1.2.0", "## Unreleased\n\n## 1.2.0 — 2026-02-03");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out == "\n- It is new.\n\n");
}

TEST_CASE(
    "a release whose tag, versions or changelog differ is refused, with the file and both values") {
  const std::string good = "## Unreleased\n\n## 1.2.0 — 2026-02-03";
  CHECK(check("v1.3.0", good).err ==
        "release: CMakeLists.txt: expected the version of the tag v1.3.0, found 1.2.0\n");
  CHECK(check("v1.2.0", good, "1.1.0").err ==
        "release: eval_out/python/pyproject.toml: expected version 1.2.0, found 1.1.0\n");
  CHECK(check("v1.2.0", "## 1.2.0").err ==
        "release: CHANGELOG.md: expected \"## 1.2.0 — YYYY-MM-DD\" as the newest release, found "
        "\"## 1.2.0\"\n");
  CHECK(check("v1.2.0", "## Unreleased\n\n- More.\n\n## 1.2.0 — 2026-02-03").err ==
        "release: CHANGELOG.md: \"## Unreleased\" is not empty: move its lines below \"## 1.2.0 — "
        "2026-02-03\"\n");
}

}  // namespace release_test
}  // namespace stepop
