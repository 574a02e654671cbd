// A small file of weights that would take all memory, or hours, is refused.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "runtime/core/formats/weights_file.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace weights_bombs_test {

/// The files of weights_bombs.py, each repeating as often as is needed here.
struct Bombs {
  Bombs() {
    run_python(
        read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/core/formats/weights_bombs.py"),
        {folder.path(""), "40000", "40000", "2000", "2000", "5000", "2000", "40", "65", "50"});
  }

  /// What is said about a file, after its path.
  std::string refusal(const std::string& name) const {
    const std::string path = folder.path(name + ".pt");
    const std::string message = message_of([&] { load_weights(path); });
    REQUIRE(message.starts_with(path + ": "));
    return message.substr(path.size() + 2);
  }

  ScratchFolder folder;
};

/// Files that unpack to less are read, within a lifetime.
struct UnpackLimit {
  explicit UnpackLimit(const char* bytes) { ::setenv("STEPOP_UNPACK_LIMIT", bytes, 1); }
  ~UnpackLimit() { ::unsetenv("STEPOP_UNPACK_LIMIT"); }
};

TEST_CASE("values of a pickle that take far more memory than its bytes are refused") {
  const Bombs bombs;
  CHECK(load_weights(bombs.folder.path("empty.pt")).tensors.size() == 1);
  const UnpackLimit limit("1e6");
  for (const std::string name : {"empty", "ordered", "global"}) {
    CAPTURE(name);
    const std::string message = bombs.refusal(name);
    CHECK(message.starts_with("the "));
    CHECK(message.find(" of its pickle up to here take ") != std::string::npos);
    CHECK(message.find("STEPOP_UNPACK_LIMIT=") != std::string::npos);
  }
}

TEST_CASE("None, True and False take no memory of their own") {
  const Bombs bombs;
  const UnpackLimit limit("1e6");
  CHECK(load_weights(bombs.folder.path("none.pt")).tensors.size() == 1);
}

TEST_CASE("names of tensors that would fill the memory are refused") {
  CHECK(Bombs().refusal("names") ==
        "the names of its tensors fill the memory; it is damaged, or made to do so");
}

TEST_CASE("dicts that are in each other so often that a walk takes hours are refused") {
  const Bombs bombs;
  for (const std::string name : {"square", "deep"}) {
    CAPTURE(name);
    CHECK(bombs.refusal(name) ==
          "its dicts are in each other too often; it is damaged, or made to take time");
  }
}

TEST_CASE("a tensor of more dimensions than PyTorch computes with is refused") {
  CHECK(Bombs().refusal("sizes") == "0: a tensor with too many dimensions");
}

TEST_CASE("entries of a ZIP archive that overlap are refused") {
  CHECK(Bombs().refusal("overlap") == "its entries overlap; copy or download it again");
}

}  // namespace weights_bombs_test
}  // namespace stepop
