#include "runtime/tools/report/code_changes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/tools/report/report.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace code_changes_test {

using Lines = std::vector<std::string>;

void keep(const ScratchFolder& folder, const std::string& start, const std::string& name,
          const std::string& text) {
  folder.write(start + "/" + name, text);
  folder.write(start + "/sources.json", "{}");
}

FileChange change(const std::string& before, const std::string& now) {
  const auto changes = compare_code({"", {{"a.cpp", before}}}, {"", {{"a.cpp", now}}});
  REQUIRE(changes.size() == 1);
  return changes.front();
}

TEST_CASE("the changed lines of a file are found, with their places") {
  const FileChange found = change("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nnew\ne\n");
  CHECK(found.what == "2 lines added, 1 removed");
  CHECK(found.lines == Lines{"@ line 2", "-b", "+B", "@ line 5", "+new"});
  CHECK(change("a\n", "a").what == "the newline at its end");
  CHECK(change("", "a\n").lines == Lines{"@ line 1", "+a"});
  CHECK(change("a\nb\n", "b\n").lines == Lines{"@ line 1", "-a"});
}

TEST_CASE("of many changed lines the first ones are shown, of a huge file as well") {
  std::string before;
  std::string now;
  for (int i = 0; i < 3000; ++i) {
    before += fmt::format("before {}\n", i);
    now += fmt::format("now {}\n", i);
  }
  const FileChange found = change("same\n" + before, "same\n" + now);
  CHECK(found.what == "3000 lines added, 3000 removed");
  CHECK(found.lines.size() == 41);
  CHECK(found.lines.front() == "@ line 2");
  CHECK(found.lines.back() == "... and 5,961 more lines");
}

TEST_CASE("runs are compared by the code of their newest starts") {
  const ScratchFolder folder;
  keep(folder, "one/code/2026-11-21T10-00-00", "net.cpp", "old\n");
  keep(folder, "one/code/2026-11-21T11-00-00", "net.cpp", "x = 1;\n");
  keep(folder, "two/code/2026-11-21T10-00-00", "net.cpp", "x = 2;\n");
  folder.write("two/code/2026-11-21T12-00-00/net.cpp", "half copied");
  folder.write("three/configs/a.yaml", "");
  const auto compare = [&](const std::string& a, const std::string& b) {
    return describe_code_changes({"a", "b"},
                                 {RunDirectory::at(folder / a), RunDirectory::at(folder / b)});
  };
  CHECK(compare("one", "two") ==
        "The code of b differs from that of a:\n"
        "  net.cpp: 1 line added, 1 removed\n"
        "    @ line 1\n"
        "    -x = 1;\n"
        "    +x = 2;\n");
  CHECK(compare("one", "one") == "The code is the same.\n");
  CHECK(compare("three", "three") == "");
  CHECK(compare("three", "two") == "Only b keeps code of its own, a does not: net.cpp\n");
}

TEST_CASE("a report shows which start trained with other code, and the newest code") {
  const ScratchFolder folder;
  for (const char* time : {"10", "11", "12"}) {
    folder.write(fmt::format("run/configs/train_2026-11-21T{}-00-00.yaml", time),
                 "code: [net.cpp]\n");
  }
  keep(folder, "run/code/2026-11-21T10-00-00", "net.cpp", "x = 1;\n");
  keep(folder, "run/code/2026-11-21T12-00-00", "net.cpp", "x = 2;\n");
  const auto data = nlohmann::json::parse(report_data(RunDirectory::at(folder / "run")));
  const auto& starts = data.at("config").at("starts");
  REQUIRE(starts.size() == 3);
  CHECK(starts[0].at("code")[0].at("what") == "added");
  CHECK(starts[1].at("code").empty());
  CHECK(starts[2].at("code")[0].at("file") == "net.cpp");
  CHECK(starts[2].at("code")[0].at("lines") == Lines{"@ line 1", "-x = 1;", "+x = 2;"});
  CHECK(data.at("code").at("folder") == "code/2026-11-21T12-00-00");
  CHECK(data.at("code").at("files")[0].at("text") == "x = 2;\n");
}

}  // namespace code_changes_test
}  // namespace stepop
