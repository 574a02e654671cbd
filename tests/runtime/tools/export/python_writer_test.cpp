#include "runtime/tools/export/python_writer.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "runtime/core/base/interrupt.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace python_writer_test {

/// A program in the place of Python; its arguments are those of `python -c CODE net.pt examples.pt
/// FILE OPTIONS PACKAGES`.
class OtherPython {
 public:
  explicit OtherPython(const std::string& script) {
    folder_.write("python", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_.path("python"), std::filesystem::perms::owner_all);
    ::setenv("STEPOP_PYTHON", folder_.path("python").c_str(), 1);
  }
  ~OtherPython() { ::unsetenv("STEPOP_PYTHON"); }

  void write(const InterruptCheck& interrupt = {}) const {
    write_with_python({.what = "an ONNX file", .packages = {"onnx"}, .code = ""}, {}, path(), {},
                      interrupt, [](const nlohmann::json&) {});
  }

  std::string path() const { return folder_.path("net.onnx"); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path(name)); }

  /// What is said when it ended, after the file's name.
  std::string failure() const {
    const std::string message = message_of([&] { write(); });
    CHECK_FALSE(has("net.onnx.part"));
    CHECK_FALSE(has("net.onnx"));
    return message.starts_with(path() + ": ") ? message.substr(path().size() + 2) : message;
  }

 private:
  ScratchFolder folder_;
};

TEST_CASE("an interrupt while Python writes leaves nothing beside the output") {
  const OtherPython python("echo half > \"$5\"; sleep 60");
  const auto interrupt = [&] {
    if (python.has("net.onnx.part")) throw Interrupted("asked to end");
  };
  CHECK(message_of([&] { python.write(interrupt); }) == "asked to end");
  CHECK_FALSE(python.has("net.onnx.part"));
}

TEST_CASE("what Python wrote is in its place when it is whole, and a reason is passed on") {
  const OtherPython whole("echo net > \"$5\"; echo '{}'");
  whole.write();
  CHECK(whole.has("net.onnx"));
  CHECK_FALSE(whole.has("net.onnx.part"));
  CHECK(OtherPython("echo reason: no opset of it; exit 5").failure() == "no opset of it");
}

TEST_CASE("a Python that ends as a writer does, but says nothing, is reported as it ended") {
  for (const std::string code : {"4", "5"}) {
    CAPTURE(code);
    const std::string failure =
        OtherPython("echo half > \"$5\"; echo out of memory >&2; exit " + code).failure();
    CHECK(failure.ends_with(" ended with the status " + code + ": out of memory"));
  }
  CHECK(OtherPython("echo ab; exit 5").failure().ends_with(" ended with the status 5: "));
}

}  // namespace python_writer_test
}  // namespace stepop
