// Files with compiled passes: whose code is proposed, for what it was compiled, damaged files.
#include <doctest/doctest.h>
#include <torch/headeronly/version.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/networks/network_alternatives.h"
#include "tests/message_of.h"
#include "tests/models/compiled_nets.h"
#include "tests/zip_entries.h"

namespace stepop {
namespace compiled_files_test {

using Json = nlohmann::json;

const ScratchFolder& nets() { return compiled_nets(); }

TEST_CASE("the other way to compute is proposed, but not for a file that others can write") {
  const ScratchFolder folder;
  const std::string path = folder.path("net.pt2");
  std::filesystem::copy_file(nets().path("two.pt2"), path);
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write);  // whatever the umask
  const auto proposed = [&](const std::string& more) {
    const auto net = exported(folder.path("net"), more);
    return to_yaml(Value(Value::Map(dynamic_cast<NetworkAlternatives&>(*net).alternatives())));
  };
  CHECK(proposed("") == "compiled: true\n");
  CHECK(proposed(kCompiled) == "compiled: false\n");
  std::filesystem::permissions(path, perms::others_write, std::filesystem::perm_options::add);
  CHECK(proposed("") == "{}\n");
  const auto none = exported(nets().path("unet"));
  CHECK(dynamic_cast<NetworkAlternatives&>(*none).alternatives().empty());
}

/// The error of "two" when its archive is changed, from the file's name on.
std::string after(const std::function<void(ZipEntries&, Json&)>& change) {
  static const ZipEntries whole = entries_of(read_bytes(nets().path("two.pt2")));
  const ScratchFolder folder;
  const std::string path = folder.path("net.pt2");
  ZipEntries entries = whole;
  std::string* document = nullptr;
  for (auto& [name, content] : entries) {
    if (name.ends_with("data/compiled/passes.json")) document = &content;
  }
  REQUIRE(document != nullptr);
  Json passes = Json::parse(*document);
  *document = "";
  change(entries, passes);
  for (auto& [name, content] : entries) {
    if (name.ends_with("data/compiled/passes.json")) content = passes.dump();
  }
  write_bytes(path, zipped(entries));
  const std::string text = message_of([&] { exported(folder.path("net"), kCompiled); });
  const size_t place = text.find(path);
  return place == std::string::npos ? text : text.substr(place + path.size());
}

std::string& member(ZipEntries& entries, const std::string& ending) {
  for (auto& [name, content] : entries) {
    if (name.ends_with(ending)) return content;
  }
  throw std::runtime_error(ending + " is missing");
}

TEST_CASE("a file without compiled passes names the command that makes them") {
  const std::string path = nets().path("unet.pt2");
  CHECK(message_of([&] { exported(nets().path("unet"), kCompiled); })
            .ends_with(path + " has no compiled passes: python -m stepop.eval.export " + path +
                       " --compile -o " + path));
}

TEST_CASE("passes for another LibTorch, processor or device name the command that compiles again") {
  const std::string command = "python -m stepop.eval.export ";
  CHECK(after([](ZipEntries&, Json&) {}) == "no error");
  CHECK(after([](ZipEntries&, Json& passes) { passes["torch"] = "2.12.0"; })
            .starts_with(": its passes were compiled for LibTorch 2.12.0, and this is " +
                         std::string(TORCH_VERSION) + ": " + command));
  CHECK(after([](ZipEntries&, Json& passes) { passes["processor"].push_back("avx9000"); })
            .starts_with(": its passes were compiled for a processor that has avx9000, which this "
                         "one has not: " +
                         command));
  CHECK(after([](ZipEntries&, Json& passes) { passes["device"] = "vulkan"; })
            .starts_with(": its passes were compiled for vulkan, which this LibTorch does not "
                         "support: " +
                         command));
  CHECK(after([](ZipEntries&, Json& passes) {
          passes["version"] = 2;
        }).starts_with(": its passes were compiled by another version of stepop: " + command));
}

TEST_CASE("libraries that are cut, changed, swapped or missing are not loaded") {
  const std::string forward = "data/compiled/training_forward.so";
  const std::string other =
      ": " + forward + " is another file than was compiled for it: it is damaged";
  CHECK(after([&](ZipEntries& entries, Json&) {
          std::string& library = member(entries, forward);
          library.resize(library.size() / 2);
        }) == other);
  CHECK(after([&](ZipEntries& entries, Json&) { member(entries, forward)[5000] ^= 1; }) == other);
  CHECK(after([&](ZipEntries& entries, Json&) {
          std::swap(member(entries, forward), member(entries, "training_backward.so"));
        }) == other);
  CHECK(after([&](ZipEntries& entries, Json&) {
          std::erase_if(entries, [&](const auto& entry) { return entry.first.ends_with(forward); });
        }) == ": " + forward + " is missing in it");
}

TEST_CASE("descriptions of passes that cannot be are refused") {
  const auto changed = [](const std::string& pointer, const Json& value) {
    return after([&](ZipEntries&, Json& passes) { passes[Json::json_pointer(pointer)] = value; });
  };
  const std::string training = "/passes/training";
  CHECK(changed("/passes/evaluation/inputs/0/tensor", "nowhere") ==
        ": the tensor nowhere is missing in it");
  CHECK(changed(training + "/inputs/0/type", 99) == ": has the unknown type 99");
  CHECK(changed(training + "/inputs/0/order", {0, 7}) == ": the place 7 is not below 2");
  CHECK(changed(training + "/inputs/0/order", {0, 0}) == ": an order has a dimension twice");
  CHECK(changed(training + "/results", Json::array()) == ": a result of the network is missing");
  CHECK(changed(training + "/forward", Json::array()) == ": a library is missing");
  CHECK(changed(training + "/tangents/0", {{"output", 5}, {"order", {0}}}) ==
        ": the place 5 is not below 2");
  CHECK(changed(training + "/gradients/0", {{"tensor", "x"}, {"tangents", {0}}}) ==
        ": has a gradient of something that it does not take");
  CHECK(changed("/passes", Json::object())
            .starts_with(": is damaged, or of another version of torch.export: "));
}

}  // namespace compiled_files_test
}  // namespace stepop
