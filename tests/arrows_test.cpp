// The pictures in runtime/README.md and in the pages of its wings are the rule: a wing, and in it a
// folder, includes what its arrows lead to.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
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
      // What users include and start from.
      if (path.starts_with("runtime/include/") || path.starts_with("iterators/include/") ||
          path.starts_with("iterators/templates/")) {
        continue;
      }
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

TEST_CASE("the public headers of the engine know no model and no iterator") {
  const fs::path headers = STEPOP_SOURCE_DIR "/runtime/include/stepop";
  CHECK(text_of(headers / "stepop.h").find("#include \"runtime/train/iterator/iterator.h\"") !=
        std::string::npos);
  for (const auto& header : fs::directory_iterator(headers)) {
    const std::string text = text_of(header.path());
    for (const char* folder : {"#include \"iterators/", "#include \"models/"}) {
      CAPTURE(header.path().string());
      CAPTURE(folder);
      CHECK(text.find(folder) == std::string::npos);
    }
  }
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// The wing of a file of the tree: `runtime/core`, `models`.
std::string wing_of(const std::string& path) {
  const size_t first = path.find('/');
  const bool is_of_runtime = path.starts_with("runtime/");
  return path.substr(0, is_of_runtime ? path.find('/', first + 1) : first);
}

/// The arrows of a page's picture: `cli["runtime/tools/cli"]` names a folder, `cli --> tune & code`
/// what it uses.
Graph drawn(const std::string& page) {
  const std::string readme = text_of(fs::path(STEPOP_SOURCE_DIR) / page);
  const size_t begin = readme.find("```mermaid\n");
  REQUIRE_MESSAGE(begin != std::string::npos, page);
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

/// Compares a picture with includes between its rooms, in both directions. `room_of` gives the room
/// of a file, or nothing for a file that the picture is not about.
void check_picture(const std::string& page,
                   const std::function<std::optional<std::string>(const std::string&)>& room_of) {
  CAPTURE(page);
  const Graph graph = drawn(page);
  Graph found;
  std::vector<std::string> wrong;
  for (const auto& [path, used] : includes()) {
    const auto room = room_of(path);
    if (!room) continue;
    if (!graph.contains(*room)) wrong.push_back(*room + " is not in the picture");
    for (const auto& header : used) {
      const auto other = room_of(header);
      if (!other || *other == *room) continue;
      found[*room].insert(*other);
      if (!reachable(graph, *room).contains(*other)) {
        wrong.push_back(fmt::format("{} includes {}", path, header));
      }
    }
  }
  CHECK_MESSAGE(wrong.empty(), fmt::format("{}", fmt::join(wrong, "\n")));
  for (const auto& [room, used] : graph) {
    CAPTURE(room);
    CHECK_FALSE(reachable(graph, room).contains(room));
    for (const auto& other : used) {
      CAPTURE(other);
      CHECK(found[room].contains(other));
    }
  }
}

TEST_CASE(
    "a wing includes only what its arrows in runtime/README.md lead to, and each arrow is an "
    "include") {
  REQUIRE(drawn("runtime/README.md").size() == 7);
  check_picture("runtime/README.md", [](const std::string& path) { return wing_of(path); });
}

TEST_CASE(
    "a folder includes only what its arrows in the page of its wing lead to, and each is an "
    "include") {
  for (const auto& [wing, arrows] : drawn("runtime/README.md")) {
    if (wing == "models") continue;  // no network of the tree knows another
    check_picture(wing + "/README.md",
                  [&its = wing](const std::string& path) -> std::optional<std::string> {
                    if (wing_of(path) != its) return {};
                    return folder_of(path);
                  });
  }
}

TEST_CASE("no model includes another") {
  size_t count = 0;
  for (const auto& [path, used] : includes()) {
    if (wing_of(path) != "models") continue;
    for (const auto& header : used) {
      if (wing_of(header) != "models") continue;
      ++count;
      CAPTURE(path);
      CHECK(folder_of(header) == folder_of(path));
    }
  }
  CHECK(count > 5);
}

/// The texts of a source, without its comments.
std::vector<std::string> texts_of(const std::string& source) {
  std::vector<std::string> texts;
  const auto behind = [&](const std::string& end, size_t from) {
    const size_t found = source.find(end, from);
    return found == std::string::npos ? source.size() : found + end.size();
  };
  for (size_t at = 0; at < source.size();) {
    if (source.compare(at, 2, "//") == 0) {
      at = behind("\n", at);
    } else if (source.compare(at, 2, "/*") == 0) {
      at = behind("*/", at + 2);
    } else if (source.compare(at, 2, "R\"") == 0) {
      const size_t open = source.find('(', at);
      const std::string end = ")" + source.substr(at + 2, open - at - 2) + "\"";
      const size_t next = behind(end, open);
      texts.push_back(source.substr(open + 1, next - end.size() - open - 1));
      at = next;
    } else if (source[at] == '\'' && at > 0 && std::isalnum(source[at - 1]) != 0) {
      ++at;  // of a number: 10'000
    } else if (source[at] == '"' || source[at] == '\'') {
      size_t end = at + 1;
      while (end < source.size() && source[end] != source[at]) end += source[end] == '\\' ? 2 : 1;
      if (source[at] == '"') texts.push_back(source.substr(at + 1, end - at - 1));
      at = end + 1;
    } else {
      ++at;
    }
  }
  return texts;
}

TEST_CASE("the texts of a source are found, and no comment is taken for one") {
  const std::string source =
      "f(\"a\\\"b\", 1'000, '\"', R\"x(c\"d)x\");  // \"no\"\n/* \"no\" */ g(\"e\");";
  CHECK(texts_of(source) == std::vector<std::string>{"a\\\"b", "c\"d", "e"});
}

TEST_CASE("the engine names no iterator and no model, not even in a text") {
  static const std::regex registered(R"(STEPOP_REGISTER_(?:ITERATOR|MODEL)\(\s*(\w+))");
  std::set<std::string> names;
  for (const auto& [path, used] : includes()) {
    if (wing_of(path) != "models" && wing_of(path) != "iterators") continue;
    const std::string text = text_of(fs::path(STEPOP_SOURCE_DIR) / path);
    for (std::sregex_iterator at(text.begin(), text.end(), registered), end; at != end; ++at) {
      names.insert((*at)[1]);
    }
  }
  REQUIRE(names.contains("Classifier"));
  REQUIRE(names.contains("LeNet"));
  REQUIRE(names.size() > 12);
  const std::regex named(fmt::format(R"(\b({})\b)", fmt::join(names, "|")));
  for (const auto& [path, used] : includes()) {
    const std::string wing = wing_of(path);
    if (wing != "runtime/core" && wing != "runtime/data" && wing != "runtime/train") continue;
    for (const auto& text : texts_of(text_of(fs::path(STEPOP_SOURCE_DIR) / path))) {
      CAPTURE(path);
      CAPTURE(text);
      CHECK_FALSE(std::regex_search(text, named));
    }
  }
}

/// `runtime/core/value/value` of `runtime/core/value/value.cpp` and of its header.
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
