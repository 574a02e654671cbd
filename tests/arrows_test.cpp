// The picture in runtime/README.md is the rule: a folder includes what its arrows lead to.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/places.h"

namespace stepop {
namespace arrows_test {

namespace fs = std::filesystem;

using Graph = std::map<std::string, std::set<std::string>>;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The files of the tree that are compiled into stepop, by their path below the tree, with what
/// they include of it.
Graph includes() {
  static const std::regex include("#include \"([^\"]+)\"");
  Graph files;
  for (const std::string top : {"runtime", "eval_out", "models", "iterators"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(STEPOP_SOURCE_DIR) / top)) {
      const std::string path = fs::relative(entry.path(), STEPOP_SOURCE_DIR).string();
      const std::string extension = entry.path().extension().string();
      // What users include and start from: both may use everything.
      if (path.starts_with("runtime/include/") || path.starts_with("iterators/templates/"))
        continue;
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string text = text_of(entry.path());
      auto& used = files[path];
      for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at) {
        used.insert((*at)[1]);
      }
    }
  }
  return files;
}

TEST_CASE("the public header knows no model and no iterator") {
  const std::string text = text_of(STEPOP_SOURCE_DIR "/runtime/include/stepop/stepop.h");
  CHECK(text.find("#include \"runtime/train/iterator/iterator.h\"") != std::string::npos);
  for (const char* folder : {"#include \"iterators/", "#include \"models/"}) {
    CAPTURE(folder);
    CHECK(text.find(folder) == std::string::npos);
  }
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// The arrows of the picture: `cli["runtime/tools/cli"]` names a folder, `cli --> loop & trial`
/// what it uses.
Graph drawn() {
  const std::string readme = text_of(STEPOP_SOURCE_DIR "/runtime/README.md");
  const size_t begin = readme.find("```mermaid\n");
  REQUIRE(begin != std::string::npos);
  const std::string picture = readme.substr(begin, readme.find("```", begin + 3) - begin);
  static const std::regex name(R"re((\w+)\["([^"]+)"\])re");
  static const std::regex arrows(R"((\w+) --> ([\w &]+))");
  std::map<std::string, std::string> folders;
  Graph graph;
  for (std::sregex_iterator at(picture.begin(), picture.end(), name), end; at != end; ++at) {
    folders[(*at)[1]] = (*at)[2];
    graph[(*at)[2]];
  }
  for (std::sregex_iterator at(picture.begin(), picture.end(), arrows), end; at != end; ++at) {
    std::istringstream used((*at)[2]);
    for (std::string id; used >> id;) {
      if (id != "&") graph[folders.at((*at)[1])].insert(folders.at(id));
    }
  }
  return graph;
}

std::set<std::string> reachable(const Graph& graph, const std::string& from) {
  std::set<std::string> seen;
  const std::function<void(const std::string&)> visit = [&](const std::string& node) {
    const auto found = graph.find(node);
    if (found == graph.end()) return;
    for (const auto& next : found->second) {
      if (seen.insert(next).second) visit(next);
    }
  };
  visit(from);
  return seen;
}

TEST_CASE("a folder includes only what its arrows in runtime/README.md lead to") {
  const Graph graph = drawn();
  std::map<std::string, std::set<std::string>> allowed;
  for (const auto& [folder, used] : graph) allowed[folder] = reachable(graph, folder);
  std::vector<std::string> wrong;
  for (const auto& [path, used] : includes()) {
    const std::string folder = folder_of(path);
    if (!graph.contains(folder)) wrong.push_back(folder + " is not in the picture");
    for (const auto& header : used) {
      const std::string other = folder_of(header);
      if (other != folder && !allowed[folder].contains(other)) {
        wrong.push_back(fmt::format("{} includes {}", path, header));
      }
    }
  }
  CHECK_MESSAGE(wrong.empty(), fmt::format("{}", fmt::join(wrong, "\n")));
}

TEST_CASE("every arrow of the picture is an include, and none leads back") {
  Graph found;
  for (const auto& [path, used] : includes()) {
    for (const auto& header : used) found[folder_of(path)].insert(folder_of(header));
  }
  const Graph graph = drawn();
  REQUIRE(graph.size() > 20);
  for (const auto& [folder, used] : graph) {
    CAPTURE(folder);
    CHECK_FALSE(reachable(graph, folder).contains(folder));
    for (const auto& other : used) {
      CAPTURE(other);
      CHECK(found[folder].contains(other));
    }
  }
}

/// `runtime/core/config/value` of `runtime/core/config/value.cpp` and of its header.
std::string without_extension(const std::string& path) { return path.substr(0, path.rfind('.')); }

TEST_CASE("no file leads back to itself, a header and its source being one") {
  Graph files;
  for (const auto& [path, used] : includes()) {
    const std::string file = without_extension(path);
    for (const auto& header : used) {
      if (without_extension(header) != file) files[file].insert(without_extension(header));
    }
  }
  REQUIRE(files.size() > 100);
  for (const auto& [file, used] : files) {
    CAPTURE(file);
    CHECK_FALSE(reachable(files, file).contains(file));
  }
}

}  // namespace arrows_test
}  // namespace stepop
