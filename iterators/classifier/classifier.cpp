#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>

#include "iterators/classifier/class_pictures.h"
#include "iterators/classifier/class_weights.h"
#include "iterators/losses/class_targets.h"
#include "iterators/losses/cross_entropy.h"
#include "iterators/metrics/running_metrics.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/data/dataset.h"
#include "runtime/data/fitted.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

constexpr const char* kUsualTarget = "class";

/// The classes of pixels and tokens as they are written: in the smallest type that holds them, and
/// -100 where `with_left_out` says so.
at::Tensor compact(const at::Tensor& classes, int64_t count, bool with_left_out) {
  constexpr int64_t kOfBytes = 256;
  constexpr int64_t kOfShorts = 32768;
  if (!with_left_out && count <= kOfBytes) return classes.to(at::kByte);
  if (with_left_out && count <= kOfBytes / 2) return classes.to(at::kChar);
  return classes.to(count <= kOfShorts ? at::kShort : at::kInt);
}

/// Trains any network with cross entropy that gives logits [B, C, ...]: the classes of images,
/// [B, C], of tokens, [B, C, T], or of pixels, [B, C, H, W].
///
/// Batches: `input`, by default `image`, is the network's input. `target`, by default `class`, is
/// int64 or uint8 [B, ...], as in class_targets, or, as soft labels, float [B, C, ...]. Labels of
/// `ignore`, and of -100, do not count: not in the loss, the accuracy and the metrics. The loss is
/// that of torch.nn.functional.cross_entropy with the same keys.
///
/// Logs the loss, the accuracy and the config's `metrics`; the input if it is an image; the target
/// and the prediction of pixels as pictures, see class_pictures.
///
/// Evaluates the loss of each example; for images `logits` [C] and the target's key []. Logits of
/// pixels would take gigabytes: there, and for tokens, it writes `prediction` and the target's key
/// [...], classes in the smallest type of integers, with -100 in the target for what does not
/// count. Those of tokens are ragged, as batches may have other lengths.
class Classifier : public Iterator {
 public:
  struct Params {
    std::string input = "image";
    std::string target = kUsualTarget;
    int64_t ignore = kLeftOutLabel;
    double label_smoothing = 0;

    void declare(Parameters& p) {
      p.add("input", input, "the batch's key of what goes into the network");
      p.add("target", target,
            "the batch's key of the classes, int64 [B, ...]; or of soft labels, float [B, classes, "
            "...]");
      p.add("ignore", ignore,
            "the label that does not count, as -100 never does; 255 for Pascal VOC and Cityscapes");
      p.add("label_smoothing", label_smoothing,
            "0 to 1: the share of the target that goes to all classes", at_least(0).at_most(1));
      p.describe({"class_weights",
                  "null",
                  "a list, how much each class counts; or balanced: n / (classes * count of the "
                  "class), from the training split",
                  false,
                  {.kind = "list of number", .choices = {"balanced"}}});
      p.describe({"metrics/<name>",
                  "none",
                  "{class: F1}: logged over all steps since the last log; `stepop list metric`",
                  false,
                  {"component metric"}});
    }
  };

  Classifier(const Params& params, const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        metrics_(context),
        input_(params.input),
        target_(params.target),
        ignore_(params.ignore),
        label_smoothing_(params.label_smoothing),
        weights_(context, target_, ignore_) {}

  StepOps step_op(const Batch& batch) override {
    const auto input = at_key(batch, input_, "input");
    const auto logits = model_->forward(input);
    at_key(batch, target_, "target");
    const auto target = class_targets(batch, target_, logits, ignore_);
    const CrossEntropyOptions options{.label_smoothing = label_smoothing_,
                                      .class_weights = weights_.of(logits)};
    return {
        .train_op =
            [=, this] {
              update_.step(cross_entropy(logits, target, options), [=, this] {
                return cross_entropy(model_->forward(input), target, options);
              });
              metrics_.update(logits, hard_classes(target));
            },
        .log_op =
            [=, this] {
              const auto classes = hard_classes(target);
              const auto predicted = logits.argmax(1);
              Logs logs{
                  .scalars = {{"loss", cross_entropy(logits, target, options)},
                              {"accuracy", weighted_mean((predicted == classes).to(at::kFloat),
                                                         classes != kLeftOutLabel)}}};
              metrics_.add_to(logs, logits, classes);
              if (input.dim() == 4) logs.images.set("input", input);
              if (classes.dim() == 3) {
                logs.images.set("target", class_pictures(classes));
                logs.images.set("prediction", class_pictures(predicted));
              }
              return logs;
            },
        .eval_op =
            [=, this] {
              const auto classes = hard_classes(target);
              const auto loss = cross_entropy_of_examples(logits, target, options);  // [B]
              if (classes.dim() == 1) {
                return EvalOutputs{.outputs = {{"logits", logits}, {target_, classes}},
                                   .labels = {{"loss", loss}}};
              }
              const auto predicted = compact(logits.argmax(1), logits.size(1), false);
              const auto truth = compact(classes, logits.size(1), true);
              if (classes.dim() == 2) {
                return EvalOutputs{
                    .outputs = {{"prediction", predicted.unbind(0)}, {target_, truth.unbind(0)}},
                    .labels = {{"loss", loss}}};
              }
              return EvalOutputs{.outputs = {{"prediction", predicted}, {target_, truth}},
                                 .labels = {{"loss", loss}}};
            },
    };
  }

  OrderedMap<std::string> eval_callbacks() const override {
    const int64_t dimensions = label_dimensions();
    std::string keys = dimensions == 0 ? "" : "logits: prediction, ";
    if (target_ != kUsualTarget) keys += fmt::format("target: \"{}\"", target_);
    OrderedMap<std::string> callbacks = {
        {"accuracy", keys.empty() ? "accuracy" : "{class: accuracy, " + keys + "}"}};
    if (dimensions == 2) {
      callbacks.set("iou", fmt::format("{{class: MeanIoU, prediction: prediction, target: \"{}\"}}",
                                       target_));
    }
    return callbacks;
  }

 private:
  /// The tensor at the key that the config's `parameter` names.
  const at::Tensor& at_key(const Batch& batch, const std::string& key,
                           const char* parameter) const {
    if (batch.contains(key)) return batch[key];
    const bool is_table = key == target_ && find_part(config(), "train", "Csv").has_value();
    throw Error(
        fmt::format("the batch has no tensor \"{}\"; there are: {}; the config's key "
                    "\"{}\" names another one{}",
                    key, batch.tensors().key_list(), parameter,
                    is_table ? fmt::format(", and a column of the Csv becomes it by columns: "
                                           "{{COLUMN: {{type: class, key: {}}}}}",
                                           key)
                             : ""));
  }

  /// 0 for the label of an image, 1 for labels of tokens, 2 for those of pixels.
  int64_t label_dimensions() const {
    const char* split = config().has("datasets/validation") ? "validation" : "train";
    try {
      const Dataset& data = context().dataset(split);
      if (const at::Tensor labels = data.labels(target_); labels.defined()) {
        return labels.is_floating_point() ? 0 : labels.dim() - 1;
      }
      Random random(0);
      const at::Tensor* target = data.get(0, random).tensors.find(target_);
      if (target == nullptr) return 0;
      return target->is_floating_point() ? std::max<int64_t>(target->dim() - 1, 0) : target->dim();
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception&) {
      return 0;  // what is wrong with the data is said where they are read
    }
  }

  std::shared_ptr<Network> model_;
  Update& update_;
  RunningMetrics metrics_;
  std::string input_;
  std::string target_;
  int64_t ignore_;
  double label_smoothing_;
  ClassWeights weights_;
};

STEPOP_REGISTER_ITERATOR(
    Classifier,
    {"Cross entropy for any network that gives logits [B, classes, ...]: of images, pixels, "
     "tokens."});

}  // namespace
}  // namespace stepop
