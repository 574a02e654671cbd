// `stepop export` with the real binary, and what Python makes of the files.
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/python.h"

namespace stepop {
namespace export_test {

namespace fs = std::filesystem;

/// A short training of the digits with averages, evaluated.
struct Exported {
  Exported() {
    run_well(folder, "stepop -n a -b CONFIG -t --num_steps 4 --ema/decay 0.5");
    run = only_run(folder);
  }

  ScratchFolder folder;
  std::string run;
};

const Exported& trained_with_averages() {
  static const Exported run;
  return run;
}

std::string error_of(const std::string& line) {
  const auto& [folder, run] = trained_with_averages();
  std::string words = line;
  for (size_t at = 0; (at = words.find("RUN")) != std::string::npos;) words.replace(at, 3, run);
  const auto result = run_in(folder, "export OMP_NUM_THREADS=1; " + words);
  CHECK(result.exit_code != 0);
  std::string text = result.err;
  for (size_t at = 0; (at = text.find(run)) != std::string::npos;)
    text.replace(at, run.size(), "RUN");
  return text;
}

constexpr const char* kRunBoth = R"py(
import gzip, sys, warnings, h5py, numpy, onnxruntime, torch
warnings.simplefilter("ignore")  # of torch.jit.load in PyTorch 2.15, of .pt2 in 2.11
net, averages = torch.jit.load("net.pt"), torch.jit.load("averages.pt")
program = torch.export.load("net.pt2").module()
session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
assert session.get_inputs()[0].shape[0] == "batch", session.get_inputs()[0].shape
with h5py.File(sys.argv[1]) as file:
    expected = file["outputs/logits"][:300]
data = numpy.frombuffer(gzip.open(sys.argv[2]).read(), numpy.uint8, offset=16)
images = torch.tensor(data.reshape(-1, 1, 8, 8)[:300] / 127.5 - 1).float()
with torch.no_grad():
    made, averaged = net(images).numpy(), averages(images).numpy()
scale = abs(expected).max()
print(abs(made - expected).max() / scale < 1e-5)
print(abs(program(images).detach().numpy() - expected).max() / scale < 1e-5)
print(abs(session.run(None, {"input": images.numpy()})[0] - expected).max() / scale < 1e-5)
print(abs(averaged - expected).max() / scale > 1e-3)
)py";

TEST_CASE("the network of a run computes in Python and in onnxruntime what its evaluation has") {
  const auto& [folder, run] = trained_with_averages();
  const auto made = run_well(folder, "stepop export " + run + " -o net.pt");
  const auto lines = lines_of(made.out);
  CHECK(lines.at(0) == "network   model: LeNet, 21,386 parameters");
  CHECK(lines.at(1) == "weights   " + run + "/train/checkpoints/model-4.safetensors");
  CHECK(lines.at(2) == "input     input: float32 [batch, 1, 8, 8]");
  CHECK(lines.at(3) == "output    float32 [batch, 10]");
  CHECK(lines.at(4).starts_with(
      "compared  with the network, on examples of an evaluation: other examples, batches of 1 and "
      "5; largest difference "));
  CHECK(lines.back().starts_with("net.pt ("));
  CHECK(lines.back().ends_with("kB): torch.jit.load(\"net.pt\")(input)"));
  const auto onnx = run_well(folder, "stepop export " + run + " -c best -o net.onnx");
  CHECK(onnx.out.find(
            "\nonnx      opset 17, onnxruntime on the same examples: largest difference ") !=
        std::string::npos);
  CHECK(lines_of(onnx.out).back().ends_with(
      "onnxruntime.InferenceSession(\"net.onnx\").run(None, {\"input\": input})"));
  const auto program = run_well(folder, "stepop export " + run + " -c best -o net.pt2");
  CHECK(program.out.find("\nexport    the program on the same examples: largest difference ") !=
        std::string::npos);
  CHECK(lines_of(program.out).back().ends_with("torch.export.load(\"net.pt2\").module()(input)"));
  // What it wrote trains here again.
  folder.write("again.yaml", "model: !replace {class: Exported, path: net.pt2}");
  CHECK(run_well(folder, "stepop -n again -b CONFIG again.yaml -t --num_steps 1")
            .out.find("model: Exported, 21,386 parameters") != std::string::npos);
  const auto averaged =
      run_well(folder, "stepop export " + run + " -o averages.pt --eval_weights ema");
  CHECK(lines_of(averaged.out).at(1).ends_with("model-4.safetensors (ema)"));
  CHECK_FALSE(fs::exists(folder.path("net.onnx.part")));

  const auto found = find_evaluations(folder.path(run));
  folder.write("both.py", kRunBoth);
  const auto both = run_in(
      folder, "'" STEPOP_SOURCE_DIR "/.venv/bin/python3' -B both.py '" + found.back().outputs +
                  "' '" STEPOP_SOURCE_DIR "/configs/data/digits-test-images.idx.gz'");
  CHECK(both.err == "");
  CHECK(both.out == "True\nTrue\nTrue\nTrue\n");
}

TEST_CASE("an ONNX file has the opset and the names that are wanted, and is run by stepop too") {
  const auto& [folder, run] = trained_with_averages();
  const auto made = run_well(folder, "stepop export " + run +
                                         " -o named.onnx --opset 15 --input-names picture "
                                         "--output-names logits --no-folding");
  CHECK(made.out.find("\ninput     picture: float32 [batch, 1, 8, 8]\n") != std::string::npos);
  CHECK(made.out.find("\nonnx      opset 15, onnxruntime on") != std::string::npos);
  CHECK(made.out.find("\nnote      the sizes above are part of the file, without the number of "
                      "examples") != std::string::npos);
  folder.write("look.py",
               "import onnx\n"
               "model = onnx.load('named.onnx')\n"
               "print(model.opset_import[0].version, [each.name for each in model.graph.input], "
               "[each.name for each in model.graph.output])\n");
  const auto looked = run_in(folder, "'" STEPOP_SOURCE_DIR "/.venv/bin/python3' -B look.py");
  CHECK(looked.out == "15 ['picture'] ['logits']\n");

  folder.write("rows.yaml", "datasets:\n  predict: {class: Idx, images: '" STEPOP_SOURCE_DIR
                            "/configs/data/digits-test-images.idx.gz', labels: '" STEPOP_SOURCE_DIR
                            "/configs/data/digits-test-labels.idx.gz'}\n");
  run_well(folder, "stepop export " + run + " -o file.pt");
  run_well(folder, "stepop export " + run + " -o file.pt2");
  run_well(folder, "stepop predict " + run + " -b rows.yaml");
  const at::Tensor expected =
      EvalFile(find_evaluations(folder.path(run)).back().outputs).read("outputs/prediction");
  const auto folder_of = [&](const std::string& name) {
    for (const auto& entry : fs::directory_iterator(folder.path("logs"))) {
      if (entry.path().string().ends_with("_" + name)) return entry.path().string();
    }
    return std::string("none");
  };
  for (const std::string file : {"named.onnx", "file.pt", "file.pt2"}) {
    CAPTURE(file);
    const std::string name = file == "named.onnx" ? "named" : "of" + file.substr(4);
    run_well(folder,
             "stepop predict " + file + " -b rows.yaml" + (name == "named" ? "" : " -n " + name));
    const auto outputs =
        EvalFile(find_evaluations(folder_of(name)).back().outputs).read("outputs/prediction");
    REQUIRE(outputs.sizes() == expected.sizes());
    CHECK((outputs - expected).abs().max().item<double>() <
          1e-5 * expected.abs().max().item<double>());
  }

  CHECK(
      error_of("STEPOP_PYTHON=no-python stepop predict named.onnx -b rows.yaml") ==
      "stepop: command line: model/class: ONNX files are run by onnxruntime, which is not there: "
      "no-python -m pip install onnxruntime: libonnxruntime.so.1: cannot open shared object file: "
      "No such file or directory\n");
  CHECK(error_of("stepop predict named.onnx -b rows.yaml --model/output other") ==
        "stepop: command line: model/output: " + folder.path("named.onnx") +
            ": there is no output \"other\"; there are: logits\n");
  folder.write("broken.onnx", "no network");
  CHECK(error_of("stepop predict broken.onnx -b rows.yaml").find("broken.onnx: ") !=
        std::string::npos);
  CHECK(error_of("stepop predict named.onnx").starts_with("stepop: "));
  CHECK(error_of("stepop export RUN -o x.onnx --opset new") ==
        "stepop: --opset new: expected a number from 9 to 20\n");
  CHECK(error_of("stepop export RUN -o x.onnx --opset 99") ==
        "stepop: --opset 99: expected a number from 9 to 20\n");
  CHECK(error_of("stepop export RUN -o x.onnx --input-names a,b") ==
        "stepop: --input-names a,b: expected names with spaces between them, --input-names a b\n");
  CHECK(error_of("stepop export RUN -o x.pt --opset 17") ==
        "stepop: -o x.pt: --opset, --input-names, --output-names and --no-folding are of an .onnx "
        "file\n");
  CHECK(error_of("stepop export RUN -o x.onnx --input-names a b") ==
        "stepop: --input-names: expected 1 name, found 2\n");
}

TEST_CASE("without -o the file lies in the run") {
  const auto& [folder, run] = trained_with_averages();
  run_well(folder, "stepop export " + run + " -c 4");
  CHECK(fs::exists(folder.path(run + "/model.pt")));
}

TEST_CASE("what cannot be exported is said before anything is computed") {
  CHECK(error_of("stepop export nowhere -o net.pt") ==
        "stepop: stepop export: nowhere: no such folder; give the folder of a run, "
        "logs/<time>_<name>\n");
  CHECK(error_of("stepop export RUN -o net.bin") ==
        "stepop: -o net.bin: expected a name that ends with .pt, for TorchScript, with .pt2, for "
        "torch.export, or with .onnx\n");
  CHECK(error_of("stepop export RUN -o nowhere/net.pt")
            .starts_with("stepop: -o nowhere/net.pt: there is no folder /"));
  CHECK(error_of("stepop export RUN --network modle") ==
        "stepop: --network modle: the run has no such network; there are: model; did you mean "
        "model?\n");
  CHECK(error_of("stepop export RUN -c 3")
            .ends_with("no such checkpoint; there are checkpoints of the steps 4\n"));
  CHECK(error_of("stepop export RUN -t")
            .starts_with("stepop: stepop export does not take -t\nstepop export RUN "));
}

TEST_CASE("an ONNX file names the package that is missing, and what installs it") {
  CHECK(error_of("STEPOP_PYTHON=no-python stepop export RUN -o missing.onnx") ==
        "stepop: missing.onnx: an ONNX file is made by Python, and there is no no-python: name one "
        "by the environment's STEPOP_PYTHON, with its packages: python3 -m pip install torch numpy "
        "onnx onnxruntime\n");
  // One without the packages: isolated, and without those of its own installation.
  const auto& [folder, run] = trained_with_averages();
  folder.write("bare", "#!/bin/sh\nexec /usr/bin/python3 -I -S \"$@\"\n");
  fs::permissions(folder.path("bare"), fs::perms::owner_all);
  CHECK(error_of("STEPOP_PYTHON=./bare stepop export RUN -o missing.onnx") ==
        "stepop: missing.onnx: ./bare has no torch numpy onnx onnxruntime, which an ONNX file "
        "takes: ./bare -m pip install torch numpy onnx onnxruntime\n");
  CHECK_FALSE(fs::exists(folder.path("missing.onnx")));
}

TEST_CASE("--check --graph shows each operation of a network") {
  const ScratchFolder folder;
  const auto checked = run_well(folder, "stepop -b CONFIG -t --check --graph");
  CHECK(checked.out.find("graph     model\n"
                         "  layer  operation   result          parameters\n"
                         "  input  input       [64, 1, 8, 8]\n"
                         "  conv1  conv2d      [64, 6, 8, 8]          156\n") != std::string::npos);
  CHECK(checked.out.find("  fc3    linear      [64, 10]               850\n") != std::string::npos);
  CHECK(run_in(folder, "stepop -b " + std::string(kConfig) + " -t --graph").err ==
        "stepop: --graph shows what networks compute on the batch of --check: give both\n");
}

}  // namespace export_test
}  // namespace stepop
