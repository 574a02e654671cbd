#include "runtime/cli/from_edflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "eval_out/callbacks/callback.h"
#include "runtime/data/dataset.h"
#include "runtime/iterator/iterator.h"
#include "runtime/networks/network.h"

namespace stepop {
namespace {

/// Keys with the same name and the same meaning.
constexpr std::array kSame = {"batch_size",
                              "test_batch_size",
                              "num_epochs",
                              "num_steps",
                              "max_batches_per_epoch",
                              "start_log_freq",
                              "log_freq",
                              "log_ops",
                              "train_ops",
                              "ckpt_freq",
                              "ckpt_zero",
                              "eval_all",
                              "eval_forever",
                              "eval_pipeline",
                              "n_data_processes",
                              "experiment_name",
                              "n_prefetch",
                              "fixed_example_indices"};

/// Keys that have no place here, and why.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kGone = {{
    {"code_root", "left out: the sources that `code` names are copied into the run by themselves"},
    {"fcond", "is Python: write it as eval_filter: {steps: [...], match: ..., where: ...}"},
    {"git", "left out: git's state is noted in the log and in outputs, nothing is committed"},
    {"image_format", "left out: pictures are PNG, or JPEG with log_images: {format: jpeg}"},
    {"hook_freq", "left out: log_freq and each op's `when` say it"},
    {"project", "left out: -p names a run to go on with"},
    {"edflow_version", "left out"},
    {"edflow", "left out"},
}};

/// Import paths of datasets that have a class here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kIdx = {{
    {"mnist.MNISTTrain", "train"},
    {"mnist.MNISTTest", "t10k"},
    {"fashionmnist.FashionMNISTTrain", "train"},
    {"fashionmnist.FashionMNISTTest", "t10k"},
}};

std::string last_part(const std::string& import_path) {
  return import_path.substr(import_path.rfind('.') + 1);
}

class EdflowTranslation {
 public:
  EdflowTranslation(std::string class_name, TranslatedConfig& result)
      : class_name_(std::move(class_name)), result_(result) {}

  void run(const Value::Map& edflow) {
    is_vunet_ = [&] {
      const Value* iterator = edflow.find("iterator");
      return iterator != nullptr && *iterator == Value("VUNet.iterator.Iterator");
    }();
    for (const auto& [key, value] : edflow) take(key, value);
    if (result_.config.find("datasets/train") == nullptr) {
      note("datasets/train", "is missing: `stepop list dataset` shows what there is");
    }
  }

 private:
  void take(const std::string& key, const Value& value) {
    if (std::find(kSame.begin(), kSame.end(), key) != kSame.end()) return set(key, value);
    if (const auto why = find_in(kGone, key); !why.empty()) return note(key, std::string(why));
    if (key == "iterator") return take_iterator(value);
    if (key == "model") return take_model(value);
    if (key == "dataset") return set("datasets/train", dataset(key, value));
    if (key == "datasets") return take_datasets(value);
    if (key == "eval_hook") return take_eval_hook(value);
    if (key == "eval_functor") return take_functor(value);
    if (key == "integrations") return take_integrations(value);
    if (key == "debug") return take_debug(value);
    if (key == "lr") return take_lr(value);
    if (is_vunet_ && key == "model_pars") return take_vunet(value);
    if (is_vunet_ && key == "losses") return set(key, value);
    own(key, value);
  }

  void take_iterator(const Value& value) {
    if (is_vunet_) return set("iterator", "VUNetIterator");
    set("iterator", component(iterators(), "iterator", value, class_name_));
  }

  void take_model(const Value& value) {
    if (is_vunet_) return set("model/class", "VUNet");
    set("model", component(models(), "model", value, class_name_ + "Network"));
  }

  void take_vunet(const Value& value) {
    if (!value.is_map()) return own("model_pars", value);
    for (const auto& [key, parameter] : value.as_map()) set("model/" + key, parameter);
    note("model_pars", "becomes parameters of model");
  }

  void take_lr(const Value& value) {
    set("optimizer/class", "Adam");
    set("optimizer/lr", value);
    note("lr", "becomes optimizer/lr: the config names the optimizer, Adam unless you change it");
  }

  void take_datasets(const Value& value) {
    if (!value.is_map()) return set("datasets/train", dataset("datasets", value));
    for (const auto& [split, path] : value.as_map()) {
      set("datasets/" + split, dataset("datasets/" + split, path));
    }
  }

  /// A dataset of this program, or one that the project's code has to have.
  Value dataset(const std::string& key, const Value& value) {
    const std::string path = value.is_text() ? value.as_text() : "";
    const std::string_view begin = "edflow.datasets.";
    if (path.starts_with(begin)) {
      const std::string_view part = find_in(kIdx, std::string_view(path).substr(begin.size()));
      if (!part.empty()) {
        note(key,
             fmt::format("{} becomes Idx: put the four files of the data set's site into data/",
                         path));
        Value::Map map;
        map.set("class", "Idx");
        map.set("images", fmt::format("data/{}-images-idx3-ubyte.gz", part));
        map.set("labels", fmt::format("data/{}-labels-idx1-ubyte.gz", part));
        return map;
      }
    }
    return component(datasets(), key, value, class_name_ + "Data");
  }

  /// The class that an import path becomes.
  template <class Registry>
  Value component(const Registry& registry, const std::string& key, const Value& value,
                  const std::string& own_class) {
    if (!value.is_text()) {
      note(key, "is no import path, and left as it is");
      return value;
    }
    const std::string name = last_part(value.as_text());
    if (is_registered(registry, name)) {
      note(key, fmt::format("{} becomes {}, which is there: see `stepop list {}`", value.as_text(),
                            name, name));
      return name;
    }
    result_.needs_code = true;
    note(key, fmt::format("{} becomes {}, a class of your own to be filled in", value.as_text(),
                          own_class));
    return own_class;
  }

  void take_eval_hook(const Value& value) {
    if (!value.is_map()) return note("eval_hook", "is no map, and left out");
    for (const auto& [key, below] : value.as_map()) {
      const std::string path = "eval_hook/" + key;
      if (key == "eval_callbacks" && below.is_map()) {
        for (const auto& [name, callback] : below.as_map()) take_callback(name, callback);
      } else if (key == "eval_op" || key == "clean_after_callbacks") {
        set(path, below);
      } else {
        note(path, "no counterpart");
      }
    }
  }

  void take_callback(const std::string& name, const Value& callback) {
    const std::string path = "eval_hook/eval_callbacks/" + name;
    const std::string function = callback.is_text() ? last_part(callback.as_text()) : "";
    if (is_registered(callbacks(), function)) return set(path, function);
    note(path, fmt::format("left out: {} is no callback here; register a function of your own, or "
                           "name a Python script: {}: ./my_callback.py",
                           callback.describe(), name));
  }

  void take_functor(const Value& value) {
    note("eval_functor",
         fmt::format("left out: {} is a class to be registered by STEPOP_REGISTER_EVAL_FUNCTOR",
                     value.describe()));
  }

  void take_integrations(const Value& value) {
    if (!value.is_map()) return note("integrations", "is no map, and left out");
    for (const auto& [key, below] : value.as_map()) {
      const std::string path = "integrations/" + key;
      if (key == "tensorboard" || key == "tensorboardX") {
        const Value* active = below.is_map() ? below.find("active") : nullptr;
        if (active != nullptr) set("integrations/tensorboard/active", *active);
      } else if (key == "wandb") {
        const Value* active = below.is_map() ? below.find("active") : nullptr;
        if (active != nullptr) set("integrations/wandb/active", *active);
      } else if (key == "minimal_logging") {
        note(path + "/image_format", std::string(find_in(kGone, "image_format")));
      } else {
        const auto why = find_in(kGone, key);
        note(path, why.empty() ? "no counterpart" : std::string(why));
      }
    }
  }

  void take_debug(const Value& value) {
    if (!value.is_map()) return note("debug", "is no map, and left out");
    for (const auto& [key, below] : value.as_map()) {
      const bool is_known =
          key == "max_steps" || key == "max_examples" || key == "disable_integrations";
      is_known ? set("debug/" + key, below) : note("debug/" + key, "no counterpart");
    }
  }

  void own(const std::string& key, const Value& value) {
    result_.own.as_map().set(key, value);
    note(key,
         fmt::format("your own: your iterator reads it, context.config.get(\"{}\", ...)", key));
  }

  void set(const std::string& path, Value value) { result_.set(path, std::move(value)); }
  void note(const std::string& key, std::string text) { result_.note(key, std::move(text)); }

  std::string class_name_;
  TranslatedConfig& result_;
  bool is_vunet_ = false;
};

}  // namespace

TranslatedConfig translate_edflow(const Value& edflow, const std::string& class_name) {
  TranslatedConfig result;
  Value read = edflow;
  read_words_of_truth(read);
  EdflowTranslation(class_name, result).run(read.as_map());
  return result;
}

}  // namespace stepop
