// The page for people from PyTorch, run as it stands there.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace pytorch_page_test {

/// The blocks of the page in a language; "" for those of a terminal.
std::vector<std::string> blocks(const std::string& language) {
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/PYTORCH.md");
  std::vector<std::string> found;
  for (size_t at = page.find("\n```"); at != std::string::npos;) {
    const size_t line_end = page.find('\n', at + 1);
    const size_t end = page.find("\n```\n", line_end);
    if (page.substr(at + 4, line_end - at - 4) == language) {
      found.push_back(page.substr(line_end + 1, end - line_end));
    }
    at = page.find("\n```", end + 4);
  }
  return found;
}

TEST_CASE("the page for people from PyTorch: a Dataset, a Module and weights of one's own") {
  const ScratchFolder folder;
  const auto python = blocks("python");
  const auto yaml = blocks("yaml");
  const auto terminal = blocks("");
  REQUIRE(python.size() == 3);
  REQUIRE(yaml.size() == 1);
  REQUIRE(terminal.size() == 3);
  folder.write("my_data.py", python[0]);
  folder.write("my_net.py", python[1]);
  folder.write("back.py", python[2]);
  folder.write("shapes.yaml", yaml[0]);
  std::string printed;
  for (const auto& block : terminal) {
    for (const auto& line : lines_of(block)) {
      if (!line.starts_with("$ ")) continue;
      CAPTURE(line);
      const auto result =
          run_in(folder, "export PATH='" STEPOP_SOURCE_DIR
                         "/.venv/bin':$PATH PYTHONPATH='" STEPOP_SOURCE_DIR "/eval_out/python'; " +
                             line.substr(2));
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      printed += result.out;
    }
  }
  CHECK(printed.find("net.pt2: 5,922 parameters, takes image [*, 1, *, *]; largest difference to "
                     "Python ") != std::string::npos);
  CHECK(printed.find("\nmodel: {class: Exported, path: net.pt2}\n") != std::string::npos);
  CHECK(printed.find("\nended: all 189 steps are done") != std::string::npos);

  // What the evaluation said is what the module has in Python, with the weights that came back.
  const std::string said = "validation/eval_op/accuracy: accuracy ";
  const std::string line = printed.substr(printed.find("step 189  "));
  const double accuracy = std::stod(line.substr(line.find(said) + said.size()));
  CHECK(accuracy > 0.9);
  const auto back = run_in(folder, "export PATH='" STEPOP_SOURCE_DIR
                                   "/.venv/bin':$PATH PYTHONPATH='" STEPOP_SOURCE_DIR
                                   "/eval_out/python'; python back.py");
  CAPTURE(back.err);
  REQUIRE(back.out.starts_with("accuracy "));
  CHECK(std::stod(back.out.substr(9)) == doctest::Approx(accuracy).epsilon(0.005));
}

}  // namespace pytorch_page_test
}  // namespace stepop
