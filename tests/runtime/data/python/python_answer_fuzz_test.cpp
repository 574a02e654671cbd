// A program in the place of Python whose answers are broken in any way: each is read or refused.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/data/python/python_stream.h"
#include "runtime/data/python/python_worker.h"
#include "runtime/data/views/cache/example_bytes.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"

namespace stepop {
namespace python_answer_fuzz_test {

/// Speaks as `script/` does, but what it says is in the files `facts` and `answer`, as it is.
constexpr const char* kFake = R"(import array, mmap, os, socket, struct, sys

def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part: os._exit(0)
        data += part
    return data

def contents(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "rb") as file: return file.read()

def serve(connection):
    block = os.memfd_create("block")
    os.truncate(block, 8192)
    while True:
        receive(connection, struct.unpack("<I", receive(connection, 4))[0])
        answer = contents("answer")
        connection.sendmsg([answer], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [block]))])

control = socket.socket(fileno=os.dup(0))
receive(control, struct.unpack("<I", receive(control, 4))[0])
control.sendall(contents("facts"))
while True:
    message, files, _, _ = socket.recv_fds(control, 1, 2)
    if not message: os._exit(0)
    if message == b"E":
        receive(control, 4)
        control.sendall(struct.pack("<i", -1))
        continue
    pid = os.fork()
    if pid == 0:
        control.close()
        serve(socket.socket(fileno=files[0]))
    for file in files: os.close(file)
    control.sendall(contents("pid") if os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pid")) else struct.pack("<i", pid))
)";

template <class Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

std::string with_length(const std::string& text) {
  return bytes_of(static_cast<uint32_t>(text.size())) + text;
}

struct Fake : ScratchFolder {
  explicit Fake(const std::string& facts) {
    write("fake.py", kFake);
    write("python", fmt::format("#!/bin/sh\nexec {} -S {}/fake.py\n", kPython, path()));
    std::filesystem::permissions(path("python"), std::filesystem::perms::owner_all);
    write("facts", with_length(facts));
  }
  PythonSetup setup() const {
    return {.place = "data", .python = path("python"), .folder = path(), .object = "a:b"};
  }
};

std::string batch_answer() {
  const std::string layout =
      R"({"tensors": [["image", "float32", [2, 3, 4], 0], ["class", "int64", [2], 128], )"
      R"(["none", "bool", [2, 0], 192]], "texts": ["name"]})";
  return "B" + bytes_of(uint32_t{0}) + bytes_of(uint64_t{4096}) + bytes_of(uint32_t{1}) +
         bytes_of(uint32_t{7}) + with_length(layout) + with_length("one") + with_length("two");
}

/// Reads a batch and looks at all of its memory.
double load(PythonWorker& worker) {
  const std::array<int64_t, 2> indices = {3, 4};
  const std::array<uint64_t, 2> seeds = {1, 2};
  const Batch batch = worker.load(indices, seeds);
  double sum = 0;
  for (const auto& [key, tensor] : batch.tensors()) {
    REQUIRE(tensor.size(0) == 2);
    if (tensor.numel() < 100'000) sum += tensor.to(at::kFloat).sum().item<double>();
  }
  for (const auto& [key, texts] : batch.texts()) REQUIRE(texts.size() == 2);
  return sum;
}

const std::vector<std::string> kWords = {
    "\"int64\"", "[2", "-1", "0",    "9223372036854775807", "1e9", "null",
    "[]",        "{}", "\"", "4096", "\"complex128\""};

TEST_CASE("a mutated answer with a batch is read or refused") {
  const Fake fake(R"({"kind": "Fake", "versions": "Python 0", "iterable": false, "size": 9})");
  PythonServer server(fake.setup(), {});
  auto worker = std::make_unique<PythonWorker>(server, 5, InterruptCheck());
  fake.write("answer", with_length(batch_answer()));
  CHECK(load(*worker) == 0);
  const uint64_t seed = fuzz_seed();
  FuzzWatch watch("answers of Python", seed);
  uint64_t read = 0, refused = 0;
  const uint64_t count = fuzz_first() + fuzz_count(1500);
  for (uint64_t i = fuzz_first(); i < count; ++i) {
    ByteMutator mutator(seed + i, kWords, {"tensors", "float32"});
    fake.write("answer", with_length(mutator.mutate(batch_answer())));
    watch.run(i, [&] {
      try {
        load(*worker);
        ++read;
      } catch (const std::exception&) {
        ++refused;
      }
    });
    if (!worker->is_usable()) worker = std::make_unique<PythonWorker>(server, 5, InterruptCheck());
  }
  CHECK(read + refused == count - fuzz_first());
  if (count > 500) CHECK(read > 10);
  if (count > 500) CHECK(refused > 100);
}

TEST_CASE("an answer that lies about its memory is refused") {
  const Fake fake(R"({"kind": "Fake", "versions": "Python 0", "iterable": false, "size": 9})");
  PythonServer server(fake.setup(), {});
  const auto message = [&](const std::string& tensor, uint64_t size = 4096) {
    const std::string layout = R"({"tensors": [)" + tensor + R"(], "texts": []})";
    fake.write("answer", with_length("B" + bytes_of(uint32_t{0}) + bytes_of(size) +
                                     bytes_of(uint32_t{0}) + with_length(layout)));
    PythonWorker worker(server, 5, {});
    return message_of([&] { load(worker); });
  };
  CHECK(message(R"(["x", "int64", [2], 0])") == "no error");
  CHECK(message(R"(["x", "int64", [2], 4088])") ==
        "Python announced a tensor outside of its memory");
  CHECK(message(R"(["x", "int64", [2], 3])") == "Python announced a tensor between two places");
  CHECK(message(R"(["x", "int64", [2, 4611686018427387904], 0])") ==
        "Python announced a tensor of impossible lengths");
  CHECK(message(R"(["x", "int64", [2, -1], 0])") ==
        "Python announced a tensor of impossible lengths");
  CHECK(message(R"(["x", "int64", [2, 9223372036854775807, 0], 0])") ==
        "Python announced a tensor of impossible lengths");
  CHECK(message(R"(["x", "int64", [3], 0])") == "Python sent another number of examples than 2");
  CHECK(message(R"(["x", "int64", [], 0])") == "Python sent another number of examples than 2");
  CHECK(message(R"(["x", "int65", [2], 0])") ==
        "a tensor of type int65 is not supported: convert it");
  CHECK(message(R"(["x", "int64", "2", 0])")
            .starts_with("Python sent a layout that cannot be read: "));
  CHECK(message(R"(["x")").starts_with("Python sent a layout that cannot be read: "));
  CHECK(message(R"(["x", "int64", [2], 0])", 1 << 20) ==
        "Python shared less memory than it announced");
  fake.write("answer", bytes_of(~uint32_t{0}));
  PythonWorker worker(server, 5, {});
  CHECK(message_of([&] { load(worker); }) == "Python announced a message of 4294967295 bytes");
  CHECK_FALSE(worker.is_usable());
  fake.write("pid", bytes_of(int32_t{-1}));
  CHECK(message_of([&] { PythonWorker(server, 5, {}); }) ==
        "Python sent -1 as the number of a process");
}

TEST_CASE("a mutated answer of an iterable dataset is read or refused") {
  const Fake fake(R"({"kind": "Fake", "versions": "Python 0", "iterable": true, "size": -1})");
  const auto server = std::make_shared<PythonServer>(fake.setup(), InterruptCheck());
  std::string record;
  append_example({.tensors = {{"x", at::arange(12)}}, .texts = {{"name", "one"}}}, record);
  const std::string good = "R" + bytes_of(int64_t{1}) + bytes_of(uint32_t{1}) +
                           with_length(R"({"place": [1, null]})") + bytes_of(uint32_t{1}) +
                           bytes_of(uint32_t{2}) + with_length(record) + with_length(record);
  const auto read_all = [](PythonStream& stream) {
    int64_t count = 0;
    Random random(0);
    while (const auto next = stream.next({})) {
      ++count;
      stream.decode(*next, random);
      stream.save();
      if (count > 100) break;
    }
    return count;
  };
  fake.write("answer", with_length(good));
  {
    PythonStream stream(server, {}, 5);
    stream.begin({});
    CHECK(read_all(stream) == 2);
    CHECK(stream.save() == R"({"state":{"place": [1, null]},"number":1,"after":1})");
  }
  const uint64_t seed = fuzz_seed();
  FuzzWatch watch("answers of an iterable dataset of Python", seed);
  auto stream = std::make_unique<PythonStream>(server, ClassRenumberings(), 5);
  const uint64_t count = fuzz_first() + fuzz_count(1000);
  uint64_t read = 0, refused = 0;
  for (uint64_t i = fuzz_first(); i < count; ++i) {
    ByteMutator mutator(seed + i, kWords, {"place", "name"});
    fake.write("answer", with_length(mutator.mutate(good)));
    watch.run(i, [&] {
      try {
        stream->begin({});
        read_all(*stream);
        ++read;
      } catch (const std::exception&) {
        ++refused;
      }
    });
  }
  CHECK(read + refused == count - fuzz_first());
  if (count > 500) CHECK(refused > 100);
}

TEST_CASE("mutated facts about a dataset are read or refused") {
  const std::string good =
      R"({"kind": "Fake", "versions": "Python 0", "iterable": false, "size": 9})";
  const Fake fake(good);
  const uint64_t seed = fuzz_seed();
  FuzzWatch watch("facts of Python", seed);
  for (uint64_t i = fuzz_first(); i < fuzz_first() + fuzz_count(1500) / 100; ++i) {
    ByteMutator mutator(seed + i, kWords, {"size", "error"});
    fake.write("facts", with_length(mutator.mutate(good)));
    watch.run(i, [&] { message_of([&] { PythonServer server(fake.setup(), {}); }); });
  }
  fake.write("facts", with_length("[1]"));
  CHECK(message_of([&] {
          PythonServer server(fake.setup(), {});
        }).ends_with("/python sent no readable answer"));
}

}  // namespace python_answer_fuzz_test
}  // namespace stepop
