// The pages that a newcomer follows, from top to bottom, with what they show as printed.
#include <doctest/doctest.h>

#include "tests/cli/page.h"
#include "tests/places.h"

namespace stepop {
namespace pages_test {

TEST_CASE("a page's steps are its files, changes and commands") {
  const auto steps = page_steps(
      "# A page\n```yaml a.yaml\nx: 1\n```\n```bash\nnot run\n```\n```console\n$ one \\\n  two\n1\n"
      "$ three\n```\n```diff a.yaml\n-x: 1\n+x: 2\n```\n");
  REQUIRE(steps.size() == 4);
  CHECK(steps[0].subject + steps[0].text == "a.yamlx: 1\n");
  CHECK(steps[1].kind + steps[1].subject + "|" + steps[1].text == "commandone \\\n  two|1\n");
  CHECK(steps[2].subject + "|" + steps[2].text == "three|");
  CHECK(steps[3].kind + steps[3].text == "change-x: 1\n+x: 2\n");
}

TEST_CASE(
    "what is printed is what a page shows, but for times, last digits and what it leaves out") {
  CHECK(page_difference("loss 0.52 in 3 s\n...\nend\n", "loss 0.531 in 17.2 s\na\nb\nend\n") == "");
  CHECK(page_difference("run  logs/2026-11-21T10-00-00_a\n",
                        "run      logs/2027-01-02T03-04-05_a\n") == "");
  CHECK(page_difference("...\n", "") == "");
  CHECK(page_difference("guide: ...\n", "guide: /a/b 3\n") == "");
  CHECK(page_difference("loss 0.52\n", "loss 0.58\n") == "line 1 of what is printed: loss 0.58");
  CHECK(page_difference("step 12\n", "step 13\n") == "line 1 of what is printed: step 13");
  CHECK(page_difference("a\n", "a\nb\n") == "line 2 of what is printed: b");
  CHECK(page_difference("a\nb\n", "a\n") == "line 2 of what is printed: (its end)");
}

TEST_CASE("the first hour, followed from top to bottom, prints what it shows") {
  const ScratchFolder folder;
  follow_page(folder, "iterators/FIRST_HOUR.md", "cp -r '" STEPOP_SOURCE_DIR "/configs' .");
}

TEST_CASE("half an hour from PyTorch prints what it shows") {
  const ScratchFolder folder;
  follow_page(folder, "iterators/PYTORCH.md");
}

TEST_CASE("half an hour from Lightning prints what it shows") {
  const ScratchFolder folder;
  follow_page(folder, "iterators/LIGHTNING.md");
}

TEST_CASE("half an hour from edflow prints what it shows") {
  const ScratchFolder folder;
  follow_page(folder, "iterators/EDFLOW.md");
}

TEST_CASE("half an hour with a GAN prints what it shows") {
  const ScratchFolder folder;
  follow_page(folder, "iterators/GAN.md");
}

}  // namespace pages_test
}  // namespace stepop
