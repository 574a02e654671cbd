// `stepop new --from-edflow`: the configs of edflow's projects, with the keys that are there.
#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/cli/code_run.h"
#include "tests/python.h"

namespace stepop {
namespace from_edflow_test {

Value made(const ScratchFolder& folder, const std::string& name) {
  return parse_yaml(read_bytes(folder / (name + "/" + name + ".yaml")), {"made", 0});
}

CommandResult make(const ScratchFolder& folder, const std::string& name, const std::string& yaml) {
  folder.write("base.yaml", yaml);
  const CommandResult result = run_in(folder, "stepop new " + name + " --from-edflow base.yaml");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  return result;
}

TEST_CASE("VUNet's config becomes one of the VUNet that is there") {
  const ScratchFolder folder;
  const auto result = make(folder, "poses", R"(
iterator: VUNet.iterator.Iterator
model: VUNet.VUnet
batch_size: 8
num_epochs: 100
code_root: null
model_pars: {final_act: True, nf_start: 64, spatial_size: 256}
lr: 0.0001
integrations:
  wandb: {active: false}
  tensorboardX: {active: yes}
losses:
  color_L1: {weight: 0.5}
  KL: {start_ramp_it: 2000, start_ramp_val: 0, end_ramp_it: 3500, end_ramp_val: 1}
)");
  CHECK(result.out.find("  lr: becomes optimizer/lr: ") != std::string::npos);
  CHECK(result.out.find("  datasets/train: is missing") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "poses/poses.cpp"));  // nothing is to be written
  const Value config = made(folder, "poses");
  CHECK(*config.find("iterator") == Value("VUNetIterator"));
  CHECK(*config.find("model/class") == Value("VUNet"));
  CHECK(*config.find("model/spatial_size") == Value(256));
  CHECK(*config.find("optimizer/lr") == Value(0.0001));
  CHECK(*config.find("losses/KL/end_ramp_it") == Value(3500));
  CHECK(*config.find("integrations/tensorboard/active") == Value(true));
  CHECK(*config.find("integrations/wandb/active") == Value(false));
  CHECK(config.find("code_root") == nullptr);
  // With data, its parameters are those that the network and the iterator take.
  const auto checked =
      run_in(folder,
             "stepop -n x -b poses/poses.yaml -t --check --num_threads 1 --batch_size 1 "
             "--model/spatial_size 32 --datasets/train '{class: Figures, size: 32}'");
  CHECK_MESSAGE(checked.exit_code == 0, checked.err);
}

TEST_CASE("edflow's template becomes a project with a class to be filled in") {
  const ScratchFolder folder;
  const auto result = make(folder, "words", R"(
datasets:
  train: edflow.datasets.fashionmnist.FashionMNISTTrain
  validation: my_project.data.Validation
model: template_pytorch.edflow.Model
iterator: template_pytorch.edflow.Iterator
batch_size: 4
num_epochs: 2
n_classes: 10
eval_hook:
  eval_callbacks: {acc: template_pytorch.edflow.acc_callback, accuracy: x.accuracy}
  label_key: 1
fcond: "lambda c: True"
fixed_example_indices: {train: [0, 1], validation: [0, 1]}
)");
  const Value config = made(folder, "words");
  CHECK(config.find("code")->as_list().at(0) == Value("words.cpp"));
  CHECK(std::filesystem::exists(folder / "words/words.cpp"));
  CHECK(*config.find("iterator") == Value("Words"));
  CHECK(*config.find("model") == Value("WordsNetwork"));
  CHECK(*config.find("datasets/train/class") == Value("Idx"));
  CHECK(*config.find("datasets/validation") == Value("WordsData"));
  CHECK(*config.find("eval_hook/eval_callbacks/accuracy") == Value("accuracy"));
  CHECK(config.find("eval_hook/eval_callbacks/acc") == nullptr);
  CHECK(config.find("n_classes") == nullptr);
  const std::string text = read_bytes(folder / "words/words.yaml");
  CHECK(text.find("\n# n_classes: 10\n") != std::string::npos);
  for (const char* note :
       {"  model: template_pytorch.edflow.Model becomes WordsNetwork, a class of your own",
        "  n_classes: your own: your iterator reads it, context.config.get(\"n_classes\", ...)",
        "  eval_hook/eval_callbacks/acc: left out: there is no callback "
        "\"template_pytorch.edflow.acc_callback\" here",
        "  eval_hook/label_key: no counterpart", "  fcond: is Python: write it as eval_filter: "}) {
    CAPTURE(note);
    CHECK(result.out.find(note) != std::string::npos);
  }
}

TEST_CASE("what edflow's integrations, pipeline and data become is said of each key") {
  const ScratchFolder folder;
  const auto result = make(folder, "many", R"(
iterator: mine.Iterator
datasets: {train: edflow.datasets.celeba.CelebATrain, validation: edflow.datasets.celeba.CelebATest}
batch_size: 4
num_epochs: 2
beta1: 0.4
integrations:
  wandb: {active: true, project: faces, entity: lab, handlers: [scalars]}
  tensorboard: {active: true, handlers: [images, figures], level: 3}
  minimal_logging: {image_format: jpg}
eval_pipeline:
  callbacks: {accuracy: x.accuracy, mine: x.mine}
  callback_kwargs: {accuracy: {target: class, plot: true}, mine: {bins: 3}}
  other: 1
)");
  const Value config = made(folder, "many");
  CHECK(*config.find("integrations/wandb/project") == Value("faces"));
  CHECK(*config.find("integrations/wandb/entity") == Value("lab"));
  CHECK(*config.find("log_images/format") == Value("jpeg"));
  CHECK(*config.find("integrations/wandb/handlers") == Value(Value::List{"scalars"}));
  CHECK(*config.find("integrations/tensorboard/handlers") == Value(Value::List{"images"}));
  CHECK(*config.find("eval_hook/eval_callbacks/accuracy") == Value("accuracy"));
  CHECK(*config.find("eval_pipeline/callback_kwargs/accuracy/target") == Value("class"));
  CHECK(config.find("eval_pipeline/callback_kwargs/accuracy/plot") == nullptr);
  CHECK(config.find("eval_pipeline/callback_kwargs/mine") == nullptr);
  CHECK(config.find("eval_pipeline/callbacks") == nullptr);
  CHECK(*config.find("datasets/train/class") == Value("CelebA"));
  CHECK(*config.find("datasets/validation/split") == Value("test"));
  CHECK(*config.find("optimizer/lr") == Value(1e-3));
  CHECK(*config.find("optimizer/betas") == Value(Value::List{0.4, 0.9}));
  for (const char* note :
       {"  integrations/tensorboard/level: no counterpart\n",
        "  eval_hook/eval_callbacks/accuracy: x.accuracy becomes accuracy, which is there",
        "  eval_pipeline/callbacks: becomes eval_hook/eval_callbacks\n",
        "  eval_pipeline/callback_kwargs/accuracy/plot: left out: accuracy has no such key\n",
        "  eval_pipeline/callback_kwargs/mine: left out: mine is not a callback of this config\n",
        "  eval_pipeline/other: no counterpart\n",
        "  datasets/train: edflow.datasets.celeba.CelebATrain becomes CelebA: put the lists and "
        "img_align_celeba.zip into data/celeba\n",
        "  optimizer: Adam with lr 1e-3, as there is no lr in the file: change it to yours\n",
        "  datasets: Many reads `point` and `class` of a batch: write there what yours have; "
        "--check "
        "shows it\n"}) {
    CAPTURE(note);
    CHECK(result.out.find(note) != std::string::npos);
  }
}

TEST_CASE("a project on edflow's own data becomes one that trains as it is written") {
  const ScratchFolder folder;
  make(folder, "digits", R"(
datasets: {train: edflow.datasets.mnist.MNISTTrain, validation: edflow.datasets.mnist.MNISTTest}
model: template_pytorch.edflow.Model
iterator: template_pytorch.edflow.Iterator
batch_size: 4
num_steps: 3
n_classes: 10
)");
  const std::string code = read_bytes(folder / "digits/digits.cpp");
  CHECK(code.find("DigitsData") == std::string::npos);  // no dataset that nothing uses
  run_python(
      "import gzip, os, struct, sys\n"
      "os.makedirs(sys.argv[1])\n"
      "for part in ('train', 't10k'):\n"
      "    with gzip.open(f'{sys.argv[1]}/{part}-images-idx3-ubyte.gz', 'wb') as f:\n"
      "        f.write(struct.pack('>4i', 2051, 8, 28, 28) + bytes(8 * 784))\n"
      "    with gzip.open(f'{sys.argv[1]}/{part}-labels-idx1-ubyte.gz', 'wb') as f:\n"
      "        f.write(struct.pack('>2i', 2049, 8) + bytes(range(8)))\n",
      {folder / "digits/data"});
  const auto trained =
      run_with_cache(folder, "cd digits && stepop -n first -b digits.yaml -t --num_threads 1");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
}

/// What `stepop -t --check` says of the project `name`, as it was written.
void check_start(const ScratchFolder& folder, const std::string& name) {
  const auto checked = run_with_cache(
      folder, "cd " + name + " && stepop -n first -b " + name + ".yaml -t --check --num_threads 1");
  CHECK_MESSAGE(checked.exit_code == 0, checked.err);
}

/// A folder of edflow's MetaDataset with eight rows of the labels that `labels` makes.
void write_meta(const ScratchFolder& folder, const std::string& labels) {
  run_python(R"(
import os, struct, sys, zlib
root = sys.argv[1]
os.makedirs(root + '/labels')
open(root + '/meta.yaml', 'w').write('description: Eight.\n')
def label(name, shape, kind, data):
    open(f'{root}/labels/{name}-*-{shape}-*-{kind}.npy', 'wb').write(data)
def png(path, side):
    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    rows = (b'\0' + bytes(3 * side)) * side
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 8, 2, 0, 0, 0)))
        f.write(chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
)" + labels,
             {folder / "people"});
}

TEST_CASE("edflow's CIFAR10 as dataset and validation_dataset, with callbacks in a list, starts") {
  const ScratchFolder folder;
  const auto result = make(folder, "small", R"(
dataset: edflow.datasets.cifar.CIFAR10
validation_dataset: edflow.datasets.cifar.CIFAR10Test
model: lab.Model
iterator: lab.Iterator
batch_size: 4
num_steps: 2
eval_pipeline: {callbacks: [edflow.x.accuracy, lab.mine]}
integrations: {wandb: {handlers: [scalars]}, git: true}
)");
  const Value config = made(folder, "small");
  CHECK(*config.find("datasets/train/split") == Value("train"));
  CHECK(*config.find("datasets/validation/split") == Value("test"));
  CHECK(*config.find("eval_hook/eval_callbacks/accuracy") == Value("accuracy"));
  for (const char* note : {"  eval_hook/eval_callbacks/mine: left out: there is no callback ",
                           "  integrations/git: left out: git's state is noted "}) {
    CAPTURE(note);
    CHECK(result.out.find(note) != std::string::npos);
  }
  run_python(R"(
import io, os, sys, tarfile
os.makedirs(sys.argv[1])
with tarfile.open(sys.argv[1] + '/cifar-10-python.tar.gz', 'w:gz') as tar:
    for name in [f'data_batch_{i}' for i in range(1, 6)] + ['test_batch']:
        rows = b''.join(bytes([i]) + bytes(3072) for i in range(4))
        info = tarfile.TarInfo(f'cifar-10-batches-bin/{name}.bin')
        info.size = len(rows)
        tar.addfile(info, io.BytesIO(rows))
)",
             {folder / "small/data"});
  check_start(folder, "small");
}

TEST_CASE("edflow's MetaDataset becomes Meta, and the project starts on a folder of its kind") {
  const ScratchFolder folder;
  write_meta(folder, R"(
label('point', '8x2', 'float32', struct.pack('<16f', *range(16)))
label('class', '8', 'int64', struct.pack('<8q', *[i % 3 for i in range(8)]))
)");
  make(folder, "kinds",
       R"(
datasets: {train: edflow.data.believers.meta.MetaDataset, validation: edflow.data.believers.meta.MetaDataset}
data_root: )" +
           folder.path("people") + R"(
model: lab.Model
iterator: lab.Iterator
batch_size: 4
num_steps: 2
)");
  CHECK(*made(folder, "kinds").find("datasets/train/class") == Value("Meta"));
  check_start(folder, "kinds");
}

TEST_CASE("VUNet's config on its own data starts as it is translated") {
  const ScratchFolder folder;
  write_meta(folder, R"(
names = [f'{root}/{i}.png' for i in range(8)]
for name in names: png(name, 32)
wide = max(len(name) for name in names)
label('crop:image', '8', f'<U{wide}', b''.join(n.ljust(wide, '\0').encode('utf-32-le') for n in names))
label('kps_rel', '8x18x2', 'float32', struct.pack('<288f', *[0.3 + 0.001 * i for i in range(288)]))
)");
  make(folder, "walk",
       R"(
iterator: VUNet.iterator.Iterator
model: VUNet.VUnet
batch_size: 1
num_steps: 2
model_pars: {spatial_size: 32}
losses: {color_L1: {weight: 0.5}}
data_root: )" +
           folder.path("people") + R"(
datasets: {train: VUNet.data.prjoti.Prjoti_VUNet_train, validation: VUNet.data.prjoti.Prjoti_VUNet_val}
)");
  check_start(folder, "walk");
}

TEST_CASE("several files of VUNet's are one config, whose pictures are those of PosePairs") {
  const ScratchFolder folder;
  folder.write("base.yaml", R"(
iterator: VUNet.iterator.Iterator
model: VUNet.VUnet
batch_size: 8
num_epochs: 100
model_pars: {spatial_size: 128}
lr: 0.0001
losses: {perceptual: {weight: 1.0}}
)");
  folder.write("prjoti.yaml", R"(
data_root: /data/PJ4
batch_size: 2
datasets: {train: VUNet.data.prjoti.Prjoti_VUNet_train, validation: VUNet.data.prjoti.Prjoti_VUNet_val}
)");
  const auto result = run_in(folder, "stepop new walk --from-edflow base.yaml prjoti.yaml");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK_FALSE(std::filesystem::exists(folder / "walk/walk.cpp"));
  const Value config = made(folder, "walk");
  CHECK(*config.find("batch_size") == Value(2));
  CHECK(*config.find("datasets/train/class") == Value("PosePairs"));
  CHECK(*config.find("datasets/train/size") == Value(128));
  CHECK(*config.find("datasets/train/dataset/dataset/path") == Value("/data/PJ4"));
  CHECK(*config.find("datasets/validation/pairs") == Value("fixed"));
  CHECK(*config.find("losses/perceptual/vgg19") == Value("vgg19.safetensors"));
  CHECK(result.out.find("  data_root: becomes the path of the datasets\n") != std::string::npos);
  CHECK(result.out.find("  losses/perceptual: vgg19 is the file of VGG19's weights: ") !=
        std::string::npos);
  CHECK(read_bytes(folder / "walk/walk.yaml").find("# From edflow's base.yaml, prjoti.yaml. ") !=
        std::string::npos);
}

TEST_CASE("what is no config of edflow's is refused, and nothing is written") {
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop new a --from-edflow none.yaml").err ==
        "stepop: cannot read none.yaml: No such file or directory\n");
  folder.write("list.yaml", "[1, 2]\n");
  CHECK(run_in(folder, "stepop new a --from-edflow list.yaml").exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
}

}  // namespace from_edflow_test
}  // namespace stepop
