// configs/GALLERY.md has every config of the tree, and what it shows is there. `make gallery`
// writes it.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace gallery_test {

namespace fs = std::filesystem;

const fs::path kTree = STEPOP_SOURCE_DIR;

std::string page() { return read_bytes((kTree / "configs" / "GALLERY.md").string()); }

bool is_named(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST_CASE("each config of the tree is in the gallery, or named as part of another one") {
  const std::string text = page();
  int configs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kTree / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string path = fs::relative(entry.path(), kTree).string();
    CAPTURE(path);
    ++configs;
    CHECK((is_named(text, " " + path) ||
           is_named(text, "`" + entry.path().filename().string() + "`")));
  }
  CHECK(configs > 10);
}

TEST_CASE("each template of stepop new is in the gallery") {
  const std::string text = page();
  int templates = 0;
  for (const auto& entry : fs::directory_iterator(kTree / "iterators" / "templates")) {
    if (!fs::exists(entry.path() / "my_model.yaml")) continue;
    CAPTURE(entry.path());
    ++templates;
    CHECK(is_named(text, " --template " + entry.path().filename().string() + "\n"));
  }
  CHECK(templates > 5);
}

TEST_CASE("the gallery shows all of its pictures, and they are small") {
  const std::string text = page();
  uintmax_t bytes = 0;
  int pictures = 0;
  for (const auto& entry : fs::directory_iterator(kTree / "configs" / "gallery")) {
    const std::string kind = entry.path().extension().string();
    if (kind != ".png" && kind != ".jpg" && kind != ".svg") continue;
    CAPTURE(entry.path());
    CHECK(is_named(text, "](gallery/" + entry.path().filename().string() + ")"));
    CHECK(entry.file_size() < 60'000);
    bytes += entry.file_size();
    ++pictures;
  }
  CHECK(pictures > 10);
  CHECK(bytes < 1'000'000);
}

TEST_CASE("the commands of the gallery are read by the program") {
  const ScratchFolder folder;
  int commands = 0;
  for (std::string line : lines_of(page())) {
    if (!line.starts_with("build/stepop ")) continue;
    CAPTURE(line);
    ++commands;
    line.erase(0, std::string("build/").size());
    if (line.starts_with("stepop -n ")) {
      REQUIRE(is_named(line + " ", " -t "));
      line = "stepop config" + line.substr(line.find(" -b "));
      line.erase(line.find(" -t"), 3);
    }
    const CommandResult result =
        run_in(folder, "ln -sfn '" + (kTree / "configs").string() + "' configs\n" + line);
    CHECK_MESSAGE(result.exit_code == 0, result.err);
  }
  CHECK(commands > 20);
}

}  // namespace gallery_test
}  // namespace stepop
