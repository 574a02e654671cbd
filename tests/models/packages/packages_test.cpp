// Small networks of timm, torchvision, transformers and peft: 10 steps here and in a loop of
// PyTorch, from the same weights, with the same batches and the same optimizer.
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/test_run.h"

namespace stepop {
namespace packages_test {

/// What networks of several inputs or results are trained by. `loss` is `classes`, of the first
/// result; `auxiliary`, with half of the second result's; `pairs`, of CLIP.
class PackageNets : public Iterator {
 public:
  explicit PackageNets(const Context& context)
      : Iterator(context),
        model_(context.network<MultiNetwork>()),
        update_(context.update()),
        inputs_(context.config.get<std::vector<std::string>>("inputs")),
        loss_(context.config.get("loss", "classes")) {}

  StepOps step_op(const Batch& batch) override {
    std::vector<at::Tensor> inputs;
    for (const auto& key : inputs_) inputs.push_back(batch[key]);
    const at::Tensor losses = losses_of(model_->forward_all(inputs), batch);
    return {.train_op = [=, this] { update_.step(losses.mean()); },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"loss", losses.mean()}}};
                },
            .eval_op =
                [=] {
                  return EvalOutputs{.labels = {{"loss", losses}}};
                }};
  }

 private:
  /// [B]
  at::Tensor losses_of(const std::vector<at::Tensor>& results, const Batch& batch) const {
    const auto of_classes = [](const at::Tensor& logits, const at::Tensor& target) {
      const auto losses = at::cross_entropy_loss(logits, target, {}, at::Reduction::None);
      return losses.dim() == 1 ? losses : losses.flatten(1).mean(1);
    };
    if (loss_ == "classes") return of_classes(results.at(0), batch["class"]);
    if (loss_ == "first") return of_classes(results.at(0), batch["mask"]);
    if (loss_ == "auxiliary") {
      return of_classes(results.at(0), batch["mask"]) +
             0.5 * of_classes(results.at(1), batch["mask"]);
    }
    const at::Tensor& pairs = results.at(0);
    const at::Tensor places = at::arange(pairs.size(0), pairs.options().dtype(at::kLong));
    return (of_classes(pairs, places) + of_classes(pairs.t(), places)) / 2;
  }

  std::shared_ptr<MultiNetwork> model_;
  Update& update_;
  std::vector<std::string> inputs_;
  std::string loss_;
};

STEPOP_REGISTER_ITERATOR(PackageNets, {"For tests.",
                                       {{"inputs", "", "keys of the batch"},
                                        {"loss", "classes", "classes, auxiliary or pairs"}}});

/// What train.py writes, once for all tests.
const ScratchFolder& files() {
  static const ScratchFolder folder;
  static const bool done = [] {
    const std::string packages = STEPOP_SOURCE_DIR "/.venv/networks";
    if (!std::filesystem::exists(packages)) {
      throw std::runtime_error(packages + " is missing: run `make deps`");
    }
    const std::string script = STEPOP_SOURCE_DIR "/tests/models/packages/train.py";
    run_python(
        "import runpy, sys\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')",
        {script, folder.path(), STEPOP_SOURCE_DIR "/eval_out/python:" + packages});
    return true;
  }();
  REQUIRE(done);
  return folder;
}

/// How far a training is from PyTorch's.
struct Distance {
  double loss = 0;        ///< of any step, relative
  double evaluation = 0;  ///< relative
  double weights = 0;     ///< of a tensor, relative to how far the training moved it
  std::string tensor;     ///< the farthest
  size_t moved = 0;       ///< how many tensors
  size_t frozen = 0;      ///< how many tensors
};

double relative(double ours, double theirs) { return std::abs(ours - theirs) / theirs; }

std::vector<double> logged(const TestRun& run, const std::string& key) {
  std::vector<double> values;
  for (const auto& row : run.metrics()) {
    if (row.contains(key)) values.push_back(row.at(key).get<double>());
  }
  return values;
}

/// Compares weights and buffers, and checks that what is frozen did not move.
void compare_weights(const State& ours, const State& facts, Distance& distance) {
  for (const auto& [key, last] : facts) {
    if (!key.starts_with("last.")) continue;
    const std::string name = key.substr(5);
    CAPTURE(name);
    const auto found = ours.find("model." + name);
    if (found == ours.end()) {  // tied: it is there by its other name
      CHECK(name == "net.lm_head.weight");
      continue;
    }
    const at::Tensor& first = facts.at("first." + name);
    const bool is_frozen = facts.contains("frozen." + name);
    distance.frozen += is_frozen ? 1 : 0;
    if (is_frozen || !last.is_floating_point()) {  // or counts batches
      CHECK(at::equal(found->second, last));
      continue;
    }
    const double movement = (last - first).norm().item<double>();
    // What has no gradient, such as the bias of keys, moves by rounding.
    const double floor = 1e-4 * (1 + first.norm().item<double>());
    const double error = (found->second - last).norm().item<double>() / std::max(movement, floor);
    distance.moved += movement > floor ? 1 : 0;
    if (error < distance.weights) continue;
    distance.weights = error;
    distance.tensor = name;
  }
}

/// Trains with the config of a network, where `to` replaces `from`.
Distance distance_of(const std::string& name, const std::string& from = "",
                     const std::string& to = "") {
  std::string yaml = read_bytes(files().path(name + ".yaml"));
  if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
  TestRun run(yaml);
  run.train();
  const auto facts = nlohmann::json::parse(read_bytes(files().path(name + ".json")));
  const auto expected = facts.at("losses").get<std::vector<double>>();
  const auto losses = logged(run, "train/log_op/loss");
  const auto evaluations = logged(run, "validation/eval_op/loss");
  REQUIRE(losses.size() == expected.size());
  REQUIRE(!evaluations.empty());
  Distance distance;
  for (size_t i = 0; i < losses.size(); ++i) {
    distance.loss = std::max(distance.loss, relative(losses[i], expected[i]));
  }
  distance.evaluation = relative(evaluations.back(), facts.at("evaluation").get<double>());
  compare_weights(run.checkpoint(static_cast<int64_t>(losses.size())),
                  load_safetensors(files().path(name + ".safetensors")).tensors, distance);
  return distance;
}

/// The largest seen is 8e-6 with AVX-512, 1.5e-5 with AVX2.
constexpr double kSameLoss = 3e-5;
constexpr double kOtherLoss = 1e-4;
constexpr double kSameWeights = 1e-3;

TEST_CASE("networks of timm, torchvision, transformers and peft train as in PyTorch's own loop") {
  for (const std::string name : {"resnet", "efficientnet", "vit", "sequencer", "fcn", "segformer",
                                 "bert", "gpt2", "clip", "lora"}) {
    CAPTURE(name);
    const Distance distance = distance_of(name);
    CAPTURE(distance.tensor);
    CHECK(distance.loss < kSameLoss);
    CHECK(distance.evaluation < kSameLoss);
    CHECK(distance.weights < kSameWeights);
    CHECK(distance.moved > 5);
    CHECK(distance.frozen == (name == "lora" ? 21 : 0));
  }
}

TEST_CASE("the comparison of those networks sees one wrong number of a training") {
  struct Mistake {
    std::string network, from, to;
  };
  const std::vector<Mistake> mistakes = {
      {"resnet", "weight_decay: 0.02", "weight_decay: 0"},
      {"resnet", "momentum: 0.9", "momentum: 0.89"},
      {"resnet", "train: sequential", "train: shuffle"},
      {"resnet", "iterator:", "freeze: [{match: 'layer3.0.bn1.bias$'}]\niterator:"},
      {"efficientnet", "weight_decay: 0.01", "weight_decay: 0"},
      {"vit", "0.95]", "0.96]"},
      {"vit", "weight_decay: 0.1", "weight_decay: 0"},
      {"gpt2", "iterator:", "label_smoothing: 0.01\niterator:"},
      {"fcn", "loss: auxiliary", "loss: first"},
      {"lora", "iterator:", "freeze: [{match: 'layers.0.*v_proj.lora_A'}]\niterator:"}};
  for (const auto& [network, from, to] : mistakes) {
    CAPTURE(network);
    CAPTURE(to);
    const Distance distance = distance_of(network, from, to);
    CAPTURE(distance.loss);
    CAPTURE(distance.weights);
    CHECK((distance.loss > kOtherLoss || distance.weights > 10 * kSameWeights));
  }
}

}  // namespace packages_test
}  // namespace stepop
