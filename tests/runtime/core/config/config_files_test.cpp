#include "runtime/core/config/config_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace config_files_test {

TEST_CASE("a file is laid over those that it includes") {
  const ScratchFolder folder;
  const std::string top =
      folder.write("top.yaml", "include: [sub/a.yaml, b.yaml]\nz: 0\ny: {q: 1}\n");
  folder.write("sub/a.yaml", "include: ../c.yaml\nx: 1\n");
  folder.write("b.yaml", "y: {p: 2, q: 2}\nw: 1\n");
  folder.write("c.yaml", "x: 3\nz: 3\nv: 3\n");
  CHECK(flow_yaml(read_config_file(top)) == "{x: 1, z: 0, v: 3, y: {p: 2, q: 1}, w: 1}");
  const auto error = [&](const std::string& content) {
    folder.write("b.yaml", content);
    return message_of([&] { read_config_file(top); });
  };
  CHECK(error("include: none.yaml") ==
        folder / "b.yaml:1: include: " + (folder / "none.yaml") + ": no such file");
  CHECK(error("include: [sub/../top.yaml]") == folder / "b.yaml:1: include: " + top +
                                                   " includes itself: " + top + " -> " +
                                                   (folder / "b.yaml") + " -> " + top);
  CHECK(error("include: {a: 1}") ==
        folder / "b.yaml:1: include: expected the names of config files, found a map");
  // Each file includes the next twice.
  for (int i = 0; i < 15; ++i) {
    const std::string next = fmt::format("deep_{}.yaml", i + 1);
    folder.write(fmt::format("deep_{}.yaml", i), fmt::format("include: [{}, {}]\n", next, next));
  }
  folder.write("deep_15.yaml", "a: 1\n");
  CHECK(error("include: deep_0.yaml").find("files that include one another, ") !=
        std::string::npos);
}

}  // namespace config_files_test
}  // namespace stepop
