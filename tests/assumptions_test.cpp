// runtime/ASSUMPTIONS.md is whole: each source that relies on the insides of others is there, with
// tests that exist.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/places.h"

namespace stepop {
namespace assumptions_test {

namespace fs = std::filesystem;

const fs::path kRoot = STEPOP_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The words between backquotes.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  std::istringstream words(cell);
  for (std::string word; std::getline(words, word, '`');) {
    std::string name;
    if (std::getline(words, name, '`')) names.push_back(name);
  }
  return names;
}

/// What shows that a source relies on the insides of LibTorch, the C library or libgomp.
bool is_daring(const std::string& source) {
  static const std::vector<std::string> signs = {
      "<torch/csrc/", "<c10/core/impl/", "<ATen/detail/", "GOMP_parallel",
      "::on_exit",    "RTLD_NEXT",       "set_terminate", "SYS_clone"};
  return std::ranges::any_of(
      signs, [&](const auto& sign) { return source.find(sign) != std::string::npos; });
}

TEST_CASE("the page of assumptions names each source that has one, and tests that exist") {
  std::set<std::string> named;  // files, and folders with a slash at the end
  std::istringstream page(text_of(kRoot / "runtime/ASSUMPTIONS.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    CAPTURE(line);
    for (const auto& file : names_in(line.substr(0, line.find(" | ")))) {
      CHECK_MESSAGE(fs::exists(kRoot / file), file);
      named.insert(file);
    }
    for (const auto& test : names_in(line.substr(line.rfind(" | ", line.size() - 3)))) {
      CHECK_MESSAGE(fs::exists(kRoot / "tests" / (test + "_test.cpp")), test);
    }
  }
  size_t daring = 0;
  for (const char* folder : {"runtime", "eval_out", "models", "iterators"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const auto extension = entry.path().extension();
      if ((extension != ".h" && extension != ".cpp") || !is_daring(text_of(entry.path()))) continue;
      ++daring;
      const std::string path = fs::relative(entry.path(), kRoot).string();
      const std::string place = path.substr(0, path.rfind('/') + 1);
      CHECK_MESSAGE((named.contains(path) || named.contains(place)), path);
    }
  }
  CHECK(daring > 30);
}

}  // namespace assumptions_test
}  // namespace stepop
