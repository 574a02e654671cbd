// The place in an iterable dataset of Python: saved anywhere, and returned to more than once.

#include "runtime/data/python/python_stream.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/python/python_server.h"
#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"

namespace stepop {
namespace python_stream_test {

constexpr const char* kData = R"(
class Flow:
    """Its place is the end of a pass until the next one has begun."""
    def __init__(self): self.i, self.is_loaded = 0, False
    def __iter__(self):
        if not self.is_loaded: self.i = 0
        self.is_loaded = False
        while self.i < 70:
            self.i += 1
            yield {"name": "n%d" % (self.i - 1)}
    def state_dict(self): return {"i": self.i}
    def load_state_dict(self, state): self.i, self.is_loaded = state["i"], True

class Late:
    """Has a state only while it is read, as the streams of Hugging Face's datasets."""
    def __init__(self): self.state = self.start = None
    def __iter__(self):
        start, self.start = self.start, None
        for i in range(start["i"] if start else 0, 70):
            self.state = {"i": i + 1}
            yield {"name": "n%d" % i}
    def state_dict(self): return self.state
    def load_state_dict(self, state): self.state, self.start = None, state

class Resets:
    """Goes on where it is, and begins anew at the end of a pass."""
    def __init__(self): self.i, self.fails = 0, []
    def __iter__(self):
        while self.i < 70:
            self.i += 1
            yield {"name": "n%d" % (self.i - 1)}
        self.i = 0
    def state_dict(self): return {"i": self.i}
    def load_state_dict(self, state): self.i = state["i"]

class Counts(Resets):
    """Shuffles by its own count of passes."""
    passes = 0
    def __iter__(self):
        while self.i < 70:
            self.i += 1
            yield {"name": "n%d" % ((self.i * 9 + 10 * self.passes) % 70)}
        self.i = 0
        self.passes += 1
    def state_dict(self): return {"i": self.i, "passes": self.passes}
    def load_state_dict(self, state): self.i, self.passes = state["i"], state["passes"]

class Empty(Flow):
    def __iter__(self): return iter([])
)";

struct Files : PythonFiles {
  Files() : PythonFiles(kData) {}
  std::shared_ptr<PythonServer> server(const std::string& name) const {
    const PythonSetup setup{.place = "data",
                            .python = kPython,
                            .folder = path(),
                            .object = path() + "/my_data.py:" + name};
    return std::make_shared<PythonServer>(setup, InterruptCheck());
  }
};

/// The names of the next examples, at most `most`.
std::vector<std::string> names(PythonStream& stream, int64_t most = 1000) {
  std::vector<std::string> found;
  Random random(0);
  while (static_cast<int64_t>(found.size()) < most) {
    const auto record = stream.next({});
    if (!record) break;
    found.push_back(stream.decode(*record, random).texts.at("name"));
  }
  return found;
}

TEST_CASE("a place anywhere in a pass can be returned to, also twice in a row") {
  const Files files;
  for (const std::string name : {"Flow", "Late", "Resets", "Counts"}) {
    CAPTURE(name);
    const auto server = files.server(name);
    PythonStream whole(server, {}, 5);
    whole.begin({.number = 0, .seed = 3});
    REQUIRE(names(whole).size() == 70);
    whole.begin({.number = 1, .seed = 3});
    std::vector<std::string> states, all;
    for (int64_t i = 0; i < 70; ++i) {
      for (auto& each : names(whole, 1)) all.push_back(std::move(each));
      states.push_back(whole.save());
    }
    REQUIRE(all.size() == 70);
    for (const size_t first : {1, 2, 5, 31, 32, 33, 34, 64, 69, 70}) {
      for (const size_t more : {0, 1, 3}) {
        if (first + more > 70) continue;
        CAPTURE(first);
        CAPTURE(more);
        PythonStream resumed(server, {}, 5);
        resumed.begin({.number = 1, .seed = 3});
        resumed.load(states[first - 1], {});
        std::vector<std::string> found(all.begin(), all.begin() + static_cast<int64_t>(first));
        for (auto& each : names(resumed, static_cast<int64_t>(more))) found.push_back(each);
        PythonStream again(server, {}, 5);
        again.begin({.number = 1, .seed = 3});
        again.load(resumed.save(), {});
        for (auto& each : names(again)) found.push_back(each);
        CHECK(found == all);
      }
    }
  }
}

TEST_CASE("a checkpoint of an earlier version with the state before a pass can be resumed") {
  const Files files;
  for (const auto& [name, state] :
       std::vector<std::pair<std::string, std::string>>{{"Flow", R"({"i": 70})"},
                                                        {"Flow", "null"},
                                                        {"Late", "null"},
                                                        {"Resets", R"({"i": 0})"}}) {
    CAPTURE(name);
    PythonStream stream(files.server(name), {}, 5);
    stream.begin({.number = 1, .seed = 3});
    stream.load(fmt::format(R"({{"state":{},"number":0,"after":12}})", state), {});
    CHECK(names(stream, 2) == std::vector<std::string>{"n12", "n13"});
  }
}

TEST_CASE("a place that the dataset does not have any more is refused with what may help") {
  const Files files;
  const auto message = [&](const std::string& name, const std::string& place) {
    PythonStream stream(files.server(name), {}, 5);
    stream.begin({.number = 1, .seed = 3});
    return message_of([&] { stream.load(place, {}); });
  };
  CHECK(message("Flow", R"({"state":{"i":68},"number":68,"after":5})") ==
        "example 70: the dataset has changed, or its load_state_dict goes elsewhere than "
        "state_dict said: it ends after 70 examples, and 73 were read before; `-c` resumes from an "
        "earlier checkpoint");
  CHECK(message("Empty", R"({"state":null,"number":0,"after":1})")
            .starts_with("example 0: the dataset has changed, or "));
  CHECK(message("Flow", R"({"state":null,"number":5,"after":1})") ==
        "example 0: the checkpoint has no state of the dataset: it was written with resume: skip");
}

}  // namespace python_stream_test
}  // namespace stepop
