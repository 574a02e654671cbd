#include "runtime/core/components/registry.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace registry_test {

using Shapes = Registry<std::string(const Config&, int)>;

/// What a shape is built from: its name, its size and what the caller hands to it.
void fill(Shapes& shapes) {
  const auto factory = [](const std::string& name) {
    return [name](const Config& params, int sides) {
      return name + " of " + params.get<std::string>("size", "default") + ", " +
             std::to_string(sides) + " sides";
    };
  };
  shapes.add({"Square", {"four equal sides", {{"size", "default", "its side"}}}, "square.cpp", 7},
             factory("Square"));
  shapes.add({"Circle",
              {"no side at all",
               {{"size", "default", "its radius"}, {"picture", "", "its texture", true}}},
              "circle.cpp",
              3},
             factory("Circle"));
  shapes.add({"Cube", {}, "cube.cpp", 5}, factory("Cube"));
}

Config config_of(const std::string& yaml) { return Config(parse_yaml(yaml, {"test.yaml", 0})); }

TEST_CASE("a component is built by its name or by a map with its parameters") {
  Shapes shapes("shape");
  fill(shapes);
  CHECK(shapes.build(config_of("shape: Square"), "shape", 4) == "Square of default, 4 sides");
  const Config config = config_of("shape: {class: Circle, size: big}");
  CHECK(shapes.build(config, "shape", 0) == "Circle of big, 0 sides");
  CHECK(config.unknown_keys().empty());
}

TEST_CASE("the names are kept sorted, each with what it tells of itself") {
  Shapes shapes("shape");
  fill(shapes);
  std::string names;
  for (const auto& registration : shapes.registrations()) names += registration.name + " ";
  CHECK(names == "Circle Cube Square ");
  CHECK(shapes.registration("Square", Config(), "").about.summary == "four equal sides");
  bool is_listed = false;
  for (const auto* catalogue : Catalogue::all()) is_listed |= catalogue == &shapes;
  CHECK(is_listed);
}

TEST_CASE(
    "an unknown component lists the known ones, the nearest first, at the place of its name") {
  Shapes shapes("shape");
  fill(shapes);
  const auto build = [&](const std::string& yaml) {
    return message_of([&] { shapes.build(config_of(yaml), "shape", 4); });
  };
  CHECK(build("a: 1\nshape: Sqare") ==
        "test.yaml:2: shape: unknown shape \"Sqare\": did you mean \"Square\"? Known are: Square, "
        "Cube, Circle");
  CHECK(build("shape:\n  size: 1\n  class: circel") ==
        "test.yaml:3: shape/class: unknown shape \"circel\": did you mean \"Circle\"? Known are: "
        "Circle, Cube, Square");
  Shapes empty("nothing");
  CHECK(message_of([&] { empty.build(config_of("shape: A"), "shape", 4); }) ==
        "test.yaml:1: shape: unknown nothing \"A\"; known are: none; one of your own is "
        "registered by STEPOP_REGISTER_NOTHING in a file that `code: [file.cpp]` names");
}

TEST_CASE("what is neither a name nor a map with one is no component") {
  const auto read = [](const std::string& yaml) {
    return message_of([&] { read_component(config_of(yaml), "shape"); });
  };
  CHECK(read("shape: [Square]") ==
        "test.yaml:1: shape: expected a name, or a map with \"class\" and parameters, found "
        "[Square]");
  CHECK(read("shape: 3") ==
        "test.yaml:1: shape: expected a name, or a map with \"class\" and parameters, found 3");
  CHECK(read("\nshape:\n  size: 1") ==
        "test.yaml:2: shape/class: missing; give it in a config, or on the command line as "
        "--shape/class VALUE");
  CHECK(read("shape: {class: 3}") == "test.yaml:1: shape/class: expected text, found 3");
  CHECK(read("other: 3") ==
        "test.yaml:1: shape: missing; give it in a config, or on the command line as --shape "
        "VALUE");
}

TEST_CASE("a component that is not built still knows its keys and its paths") {
  Shapes shapes("shape");
  fill(shapes);
  const Config config = Config(parse_yaml("shape: {class: Circle, picture: a.png, sise: 3}",
                                          {"/data/configs/test.yaml", 0}));
  declare_component(shapes, config, "shape");
  CHECK(config.peek("shape/picture")->as_text() == "/data/configs/a.png");
  CHECK(config.unknown_keys() ==
        "/data/configs/test.yaml:1: unknown key \"shape/sise\": did you mean \"shape/size\"?");

  const Config unknown = config_of("shape: Sqare");
  CHECK(message_of([&] { declare_component(shapes, unknown, "shape"); }) ==
        "test.yaml:1: shape: unknown shape \"Sqare\": did you mean \"Square\"? Known are: Square, "
        "Cube, Circle");
  CHECK(message_of([&] { declare_component(shapes, config_of("a: 1"), "shape"); }) == "no error");
}

TEST_CASE("the same name twice is an error that names both files") {
  {
    Shapes shapes("shape");
    fill(shapes);
    shapes.add({"Cube", {}, "models/other_cube.cpp", 12}, nullptr);
    CHECK(message_of(Catalogue::check) ==
          "the shape \"Cube\" is registered twice: at cube.cpp:5 and at models/other_cube.cpp:12; "
          "rename one of them");
  }
  CHECK(message_of(Catalogue::check) == "no error");
}

TEST_CASE("a role of a kind has names of its own, and the messages name it") {
  Shapes lines("line", "drawing");
  Shapes areas("area", "drawing");
  fill(areas);
  lines.add({"Square", {"its outline", {}}, "line.cpp", 1}, nullptr);
  lines.add({"Edge", {"one side", {}}, "line.cpp", 2}, nullptr);
  CHECK(message_of(Catalogue::check) == "no error");
  CHECK(lines.kind() == areas.kind());
  CHECK(message_of([&] { lines.registration("Circle", config_of("a: Circle"), "a"); }) ==
        "test.yaml:1: a: unknown line \"Circle\": that is an area: stepop list \"area\"");
  CHECK(message_of([&] { areas.registration("Edges", config_of("a: Edges"), "a"); }) ==
        "test.yaml:1: a: unknown area \"Edges\"; known are: Cube, Circle, Square; one of your own "
        "is registered by STEPOP_REGISTER_AREA in a file that `code: [file.cpp]` names");
}

TEST_CASE("an alias is read, is not listed, and gives way to another one of its name") {
  for (const bool is_first : {true, false}) {
    Shapes shapes("shape");
    const auto add_alias = [&] {
      shapes.add({"Cube", {"an old name", {}, /*is_alias=*/true}, "old.cpp", 1}, nullptr);
    };
    if (is_first) add_alias();
    fill(shapes);
    if (!is_first) add_alias();
    shapes.add({"Quad", {"of another library", {}, /*is_alias=*/true}, "old.cpp", 2}, nullptr);
    CHECK(message_of(Catalogue::check) == "no error");
    CHECK(shapes.build(config_of("shape: Cube"), "shape", 4) == "Cube of default, 4 sides");
    CHECK(shapes.registration("Quad", Config(), "").about.summary == "of another library");
    CHECK(message_of([&] { shapes.build(config_of("shape: Quat"), "shape", 4); }) ==
          "test.yaml:1: shape: unknown shape \"Quat\": did you mean \"Quad\"? Known are: Cube, "
          "Square, Circle");
    CHECK(message_of([&] { shapes.build(config_of("shape: Ring"), "shape", 4); }).find("Quad") ==
          std::string::npos);
  }
}

TEST_CASE("the same name in two kinds is no mistake") {
  Shapes shapes("shape");
  Shapes bodies("body");
  fill(shapes);
  fill(bodies);
  CHECK(message_of(Catalogue::check) == "no error");
}

TEST_CASE("a text of one kind is no path because another kind has a path of that name") {
  Shapes shapes("shape");
  Shapes bodies("body");
  fill(shapes);
  bodies.add({"Circle", {"a ball", {{"picture", "", "what is written on it"}}}, "ball.cpp", 1},
             nullptr);
  const std::string circle = "{class: Circle, picture: a.png}";
  const Config config(parse_yaml("shape: " + circle + "\nbody: " + circle + "\nother: " + circle,
                                 {"/data/test.yaml", 0}));
  make_paths_absolute(config);
  CHECK(config.peek("shape/picture")->as_text() == "/data/a.png");
  CHECK(config.peek("body/picture")->as_text() == "a.png");
  // Where nothing says which of them it is, the path must not get lost.
  CHECK(config.peek("other/picture")->as_text() == "/data/a.png");
}

Shapes& macro_shapes() {
  static Shapes shapes("macro shape");
  return shapes;
}
std::string make_line(const Config&, int) { return "line"; }
STEPOP_REGISTER(macro_shapes(), "Line", make_line, {"a line", {}});
STEPOP_REGISTER(macro_shapes(), "Stroke", make_line, {"the same, by another name", {}});

// In a macro, `word` in quotes has them in its text.
#define STEPOP_TEST_WORD(word) #word
static_assert(has_no_quotes(STEPOP_TEST_WORD(Line)));
static_assert(!has_no_quotes(STEPOP_TEST_WORD("Line")));
#undef STEPOP_TEST_WORD

TEST_CASE("the macro registers before main, with the place of its use") {
  const Registration& line = macro_shapes().registration("Line", Config(), "");
  CHECK(line.file == __FILE__);
  CHECK(line.line > 0);
  CHECK(line.about.summary == "a line");
  CHECK(macro_shapes().registrations().size() == 2);
}

}  // namespace registry_test
}  // namespace stepop
