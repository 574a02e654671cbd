#include "runtime/core/formats/torch_file.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "runtime/core/formats/weights_file.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace torch_file_test {

void write_files(const ScratchFolder& folder) {
  run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/core/formats/torch_files.py"),
             {folder.path("")});
}

TEST_CASE("tensors that PyTorch saved are read with the same bits, in both of its formats") {
  const ScratchFolder folder;
  write_files(folder);
  for (const std::string form : {"", "old-"}) {
    for (const std::string name :
         {"types.pt", "views.pt", "state.pth", "parameters.bin", "lightning.ckpt"}) {
      const std::string path = folder.path(form + name);
      CAPTURE(path);
      const State expected = load_safetensors(path + ".safetensors").tensors;
      CHECK(expected.size() >= 4);
      const State found = load_weights(path).tensors;
      CHECK(differences(found, expected) == "");
      for (const auto& [tensor_name, tensor] : found) CHECK(tensor.is_contiguous());
    }
  }
}

TEST_CASE("a tensor that is stored with the other sign has its own") {
  const ScratchFolder folder;
  run_python(
      "import sys, torch\n"
      "for old in (True, False):\n"
      "    torch.save({'x': torch._neg_view(torch.tensor([1.0, -2.0]))}, sys.argv[1 + old],\n"
      "               _use_new_zipfile_serialization=not old)",
      {folder.path("new.pt"), folder.path("old.pt")});
  for (const char* name : {"new.pt", "old.pt"}) {
    CAPTURE(std::string(name));
    const at::Tensor found = load_weights(folder.path(name)).tensors.at("x");
    CHECK(found[0].item<float>() == -1);
    CHECK(found[1].item<float>() == 2);
  }
}

TEST_CASE("the old format is read in each protocol of pickles that PyTorch reads") {
  const ScratchFolder folder;
  run_python(
      "import sys, torch\n"
      "rest = {'big': 2**40, 'huge': -2**90, 'few': -5, 'is': True, 'real': 2.5, 'b': b'a\\xff'}\n"
      "for protocol in range(6):\n"
      "    for old in (True, False):\n"
      "        torch.save({'w': torch.arange(3.0), 2**31: torch.ones(1), 'rest': rest},\n"
      "                   f'{sys.argv[1]}/{old}{protocol}', pickle_protocol=protocol,\n"
      "                   _use_new_zipfile_serialization=not old)",
      {folder.path("")});
  for (const std::string form : {"True", "False"}) {
    for (int protocol = 1; protocol <= 5; ++protocol) {
      CAPTURE(form);
      CAPTURE(protocol);
      const std::string path = folder.path(form + std::to_string(protocol));
      CHECK(is_weights_of_python(path));
      const State found = load_weights(path).tensors;
      CHECK(found.size() == 2);
      CHECK(found.at("w")[2].item<float>() == 2);
      CHECK(found.contains("2147483648"));
    }
    CHECK(message_of([&] { load_weights(folder.path(form + "0")); })
              .ends_with("written with protocol 0, in which PyTorch cannot read tensors either; "
                         "save it with pickle_protocol=2"));
  }
}

TEST_CASE("weights that are packed by gzip say how they are unpacked") {
  const ScratchFolder folder;
  folder.write("net.pt.gz", std::string("\x1f\x8b\x08\0\0\0\0\0", 8) + std::string(30, 'x'));
  const std::string path = folder.path("net.pt.gz");
  CHECK(is_weights_of_python(path));
  CHECK(message_of([&] { load_weights(path); }) ==
        path + ": it is packed by gzip; unpack it first: gunzip -c " + path + " > weights.pt");
}

TEST_CASE("tensors outlive the file's name") {
  const ScratchFolder folder;
  write_files(folder);
  const State found = load_torch_file(folder.path("types.pt"));
  std::filesystem::remove(folder.path("types.pt"));
  CHECK(differences(found, load_safetensors(folder.path("types.pt.safetensors")).tensors) == "");
}

TEST_CASE("an index names the files of a large network") {
  const ScratchFolder folder;
  write_files(folder);
  const State expected = load_safetensors(folder.path("state.pth.safetensors")).tensors;
  const State found = load_weights(folder.path("model.bin.index.json")).tensors;
  CHECK(found.size() == 3);
  for (const auto& [name, tensor] : found) CHECK(tensor.equal(expected.at(name)));
  const std::string path = folder.path("out.index.json");
  CHECK(message_of([&] { load_weights(path); }) ==
        path + ": weight_map: expected the name of a file beside it for fc.weight");
  folder.write("no.index.json", "[]");
  CHECK(message_of([&] { load_weights(folder.path("no.index.json")); }) ==
        folder.path("no.index.json") +
            ": an index of weights has a map `weight_map` of names and files");
}

TEST_CASE("what only Python can make is refused by name") {
  const ScratchFolder folder;
  write_files(folder);
  const auto refused = [&](const std::string& name) {
    const std::string path = folder.path(name);
    const std::string message = message_of([&] { load_weights(path); });
    REQUIRE(message.starts_with(path + ": "));
    return message.substr(path.size() + 2);
  };
  const std::string help = "torch.save(net.state_dict(), path) writes its weights";
  CHECK(refused("object.pt") ==
        "it holds an object of the class __main__.Net, which only Python can make; " + help);
  CHECK(refused("list.pt") == "it holds no dict of tensors; " + help);
  CHECK(refused("none.pt") == "it holds a dict without tensors; " + help);
  CHECK(refused("script.pt") ==
        "it is a network with its code, as torch.jit.save writes it; " + help);
  CHECK(refused("expanded.pt") ==
        "wide: a tensor that is larger than its storage; clone() makes an expanded one whole");
  CHECK(refused("sparse.pt") ==
        "sparse: a tensor that torch._utils._rebuild_sparse_tensor makes, which is not read");
}

TEST_CASE("a network of torch.export is said to be one, with what reads it") {
  const ScratchFolder folder;
  run_python(
      "import sys, torch\n"
      "net = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(4, 2),))\n"
      "torch.export.save(net, sys.argv[1])",
      {folder.path("net.pt2")});
  const std::string path = folder.path("net.pt2");
  CHECK(message_of([&] { load_weights(path); }) ==
        path +
            ": it is an exported network, as torch.export.save writes it, and a "
            "model, not weights; torch.save(net.state_dict(), path) writes its "
            "weights");
}

TEST_CASE("views that would fill the memory are refused") {
  const ScratchFolder folder;
  run_python(
      "import sys, torch\n"
      "t = torch.zeros(100, 100).t()\n"
      "torch.save({str(i): t.view_as(t) for i in range(500)}, sys.argv[1])",
      {folder.path("views.pt")});
  CHECK(load_torch_file(folder.path("views.pt")).size() == 500);
  ::setenv("STEPOP_UNPACK_LIMIT", "1e6", 1);
  const std::string message = message_of([&] { load_torch_file(folder.path("views.pt")); });
  ::unsetenv("STEPOP_UNPACK_LIMIT");
  CHECK(message.starts_with(folder.path("views.pt") + ": its tensors take "));
}

TEST_CASE("a damaged file is refused") {
  const ScratchFolder folder;
  write_files(folder);
  std::string bytes = read_bytes(folder.path("types.pt"));
  const at::Tensor values = load_weights(folder.path("types.pt")).tensors.at("float32");
  const auto* begin = static_cast<const char*>(values.const_data_ptr());
  const size_t data = bytes.find(std::string(begin, values.nbytes()));
  REQUIRE(data != std::string::npos);
  bytes[data] = static_cast<char>(bytes[data] ^ 1);
  folder.write("flipped.pt", bytes);
  CHECK(message_of([&] { load_weights(folder.path("flipped.pt")); }).find("data/0") !=
        std::string::npos);
  for (const std::string name : {"types.pt", "old-types.pt"}) {
    const std::string whole = read_bytes(folder.path(name));
    folder.write("cut.pt", whole.substr(0, whole.size() - 40));
    CHECK(message_of([&] {
            load_weights(folder.path("cut.pt"));
          }).starts_with(folder.path("cut.pt") + ": "));
  }
}

}  // namespace torch_file_test
}  // namespace stepop
