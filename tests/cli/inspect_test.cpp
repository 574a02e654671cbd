// `stepop inspect FILE`.

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "eval_out/write/eval_writer.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/cli/command.h"
#include "tests/places.h"
#include "tests/python.h"

namespace stepop {
namespace inspect_test {

namespace fs = std::filesystem;

/// Outputs of three examples; the first line of what is printed has a time and is left out.
void write_outputs(const std::string& path, bool is_whole) {
  fs::create_directories(fs::path(path).parent_path());
  EvalWriter writer(path, 3,
                    {{"global_step", int64_t{1460}},
                     {"split", "validation"},
                     {"iterator", "Classifier"},
                     {"config", "a: 1\nb: 2\n"},
                     {"config_json", R"({"a": 1, "b": 2})"},
                     {"note", 0.5}});
  writer.write(
      {.outputs = {{"logits",
                    at::tensor({1.F, -2.5F, std::nanf(""), INFINITY, 0.F, 7.F}).reshape({3, 2})},
                   {"boxes", std::vector<at::Tensor>{at::zeros({0, 4}), at::full({2, 4}, 3.F),
                                                     at::zeros({5, 4})}},
                   {"caption", std::vector<std::string>{"", "four", "sevenäx"}},
                   {"is_right", at::tensor({1, 0, 1}).to(at::kBool)}},
       .labels = {{"loss", at::arange(3)}}},
      std::vector<int64_t>{4, 5, 9});
  if (is_whole) writer.finish();
}

std::string without_first_line(const std::string& text) { return text.substr(text.find('\n') + 1); }

constexpr const char* kTable =
    "  global_step     1,460\n"
    "  split           validation\n"
    "  iterator        Classifier\n"
    "  config          2 lines of YAML\n"
    "  config_json     16 B of JSON\n"
    "  format_version  1\n"
    "  note            0.5\n"
    "\n"
    "key               type     shape           size   min  max    mean  NaN  inf\n"
    "index             int64    [3]             24 B     4    9       6    -    -\n"
    "labels/loss       int64    [3]             24 B     0    2       1    -    -\n"
    "outputs/boxes     float32  [3, 0 to 5, 4]  65.6 kB    0    3  0.8571    -    -  ragged, mean "
    "length 2.333\n"
    "outputs/caption   text     [3]             60 B     -    -       -    -    -  0 to 8 bytes, "
    "mean 4\n"
    "outputs/is_right  bool     [3]              3 B     0    1  0.6667    -    -\n"
    "outputs/logits    float32  [3, 2]          24 B  -2.5    7   1.375    1    1\n";

/// Spaces between columns count as one.
std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  }
  return result;
}

TEST_CASE("a file of outputs is told with its source, keys, shapes, ranges, NaNs and lengths") {
  const ScratchFolder folder;
  const std::string path = "run/eval/2026-11-21T10-00-00_a/1460/outputs.h5";
  folder.write("run/configs/train_a.yaml", "");
  write_outputs(folder / path, true);
  for (const std::string& given : {path, std::string("run"), std::string("run/"),
                                   std::string("run/eval/2026-11-21T10-00-00_a/1460")}) {
    CAPTURE(given);
    const CommandResult result = run_in(folder, "stepop inspect " + given);
    CHECK(result.err == "");
    CHECK(result.exit_code == 0);
    CHECK(result.out.starts_with(path + ": outputs of an evaluation, complete, 3 rows, "));
    CHECK(squeezed(without_first_line(result.out)) == squeezed(kTable));
  }
}

TEST_CASE("outputs that were cut short are told, and found") {
  const ScratchFolder folder;
  write_outputs(folder / "outputs.h5", false);
  for (const char* given : {"outputs.h5.part", "."}) {
    const CommandResult result = run_in(folder, std::string("stepop inspect ") + given);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("NOT complete: it was stopped, or is being written, 3 rows") !=
          std::string::npos);
  }
  CHECK(run_in(folder, "stepop inspect outputs.h5").err ==
        "stepop: outputs.h5: no such file; outputs.h5.part holds the rows of an unfinished "
        "evaluation\n");
}

TEST_CASE("files of PyTorch show their tensors") {
  const ScratchFolder folder;
  run_python(
      "import sys, torch\n"
      "torch.save({'state_dict': {'fc.weight': torch.ones(2, 3), 'n': torch.tensor(4)}}, "
      "sys.argv[1])",
      {folder / "net.ckpt"});
  const CommandResult result = run_in(folder, "stepop inspect net.ckpt");
  CHECK(result.err == "");
  CHECK(result.out.starts_with("net.ckpt: weights of Python, 2 tensors, 7 numbers, "));
  CHECK(result.out.find("\nstate_dict.fc.weight  float32  [2, 3]  24 B") != std::string::npos);
  CHECK(result.out.find("\nstate_dict.n          int64    []       8 B") != std::string::npos);
}

TEST_CASE("what is none, damaged or newer is refused with the reason") {
  const ScratchFolder folder;
  folder.write("text.h5", "no HDF5");
  folder.write("bad.safetensors", "short");
  fs::create_directory(folder / "empty");
  write_outputs(folder / "cut.h5", true);
  fs::resize_file(folder / "cut.h5", fs::file_size(folder / "cut.h5") / 2);
  run_python(
      "import sys, h5py\n"
      "f = h5py.File(sys.argv[1], 'w'); f.attrs['format_version'] = 2\n"
      "f = h5py.File(sys.argv[2], 'w'); f['x'] = [1]\n",
      {folder / "newer.h5", folder / "other.h5"});
  const auto refused = [&](const std::string& words, int exit_code, const std::string& message) {
    const CommandResult result = run_in(folder, "stepop inspect" + words);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(result.out == "");
    CHECK(result.exit_code == exit_code);
  };
  refused(" text.h5", 1, "cannot read text.h5: it is not an HDF5 file");
  refused(" cut.h5", 1, "cannot read cut.h5: the file is cut short");
  refused(" newer.h5", 1, "newer.h5: format 2 is newer than this program, which reads format 1");
  refused(" other.h5", 1,
          "other.h5: not a file of evaluation outputs: it has no attribute \"format_version\"");
  refused(" bad.safetensors", 1, "bad.safetensors: it has 5 bytes, too few for a safetensors file");
  refused(" none", 2, "stepop inspect: none: no such file or folder");
  CHECK(
      run_in(folder, "stepop inspect").err.starts_with("stepop: stepop inspect: nothing given\n"));
  refused(
      " empty", 2,
      "empty: no outputs in this folder; give the folder of a run that was evaluated, of one of "
      "its evaluations (eval/<time>_<name>/<step>), or an outputs.h5");
}

TEST_CASE("a file that another process has open to write it is told as such") {
  const ScratchFolder folder;
  const std::string printed = run_python(
      "import h5py, subprocess, sys\n"
      "f = h5py.File(sys.argv[2], 'w'); f.flush()\n"
      "print(subprocess.run([sys.argv[1], 'inspect', 'a.h5'], cwd=sys.argv[3], text=True,\n"
      "                     stderr=subprocess.PIPE).stderr, end='')",
      {STEPOP_BINARY_DIR "/stepop", folder / "a.h5", folder.path()});
  CHECK(printed == "stepop: cannot read a.h5: another process is writing it\n");
}

TEST_CASE("a safetensors file is told tensor by tensor, a damaged checkpoint as such") {
  const ScratchFolder folder;
  Checkpoint checkpoint;
  checkpoint.tensors = {{"model.w", at::tensor({1.F, NAN, 3.F, 2.F}).reshape({2, 2})}};
  checkpoint.progress.global_step = 1100;
  checkpoint.progress.epoch = 7;
  checkpoint.progress.samples_seen = 70400;
  const std::string path = save_checkpoint(folder.path(), checkpoint);
  const std::string table =
      "tensor   type     shape   size  min  max  mean  NaN  inf\n"
      "model.w  float32  [2, 2]  16 B    1    3     2    1    -\n";
  const CommandResult whole = run_in(folder, "stepop inspect model-1100.safetensors");
  CHECK(
      whole.out.starts_with("model-1100.safetensors: checkpoint of step 1,100, epoch 7, 70,400 "
                            "examples seen, 1 tensor, 4 numbers, "));
  CHECK(without_first_line(whole.out) == "\n" + table);

  std::string bytes = read_bytes(path);
  bytes.back() ^= 1;
  write_bytes(path, bytes);
  const CommandResult damaged = run_in(folder, "stepop inspect model-1100.safetensors");
  CHECK(without_first_line(damaged.out).starts_with("  damaged: its checksum is "));

  save_safetensors(folder / "other.safetensors", {{"x", at::zeros({3}, at::kLong)}});
  const CommandResult other = run_in(folder, "stepop inspect other.safetensors");
  CHECK(other.out.starts_with("other.safetensors: tensors of another program, 1 tensor, "));
}

TEST_CASE("tensors of a type that cannot be read are listed without their values") {
  const ScratchFolder folder;
  std::string header = R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                       R"("f":{"dtype":"F8_E4M3","shape":[2,1],"data_offsets":[2,4]},)"
                       R"("u":{"dtype":"U32","shape":[1],"data_offsets":[4,8]}})";
  header.resize(200, ' ');
  write_bytes(folder / "a.safetensors",
              std::string("\xc8\0\0\0\0\0\0\0", 8) + header + "\1\3abcdef");
  const CommandResult result = run_in(folder, "stepop inspect a.safetensors");
  CHECK(result.exit_code == 0);
  CHECK(without_first_line(result.out) ==
        "\n"
        "tensor  type     shape   size  min  max  mean  NaN  inf\n"
        "b       uint8    [2]      2 B    1    3     2    -    -\n"
        "f       F8_E4M3  [2, 1]   2 B    -    -     -    -    -  values are not read\n"
        "u       U32      [1]      4 B    -    -     -    -    -  values are not read\n");
}

}  // namespace inspect_test
}  // namespace stepop
