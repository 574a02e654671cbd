#include "runtime/tools/migrate/from_edflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "eval_out/callbacks/callback.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/dataset.h"
#include "runtime/tools/migrate/from_edflow_datasets.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"

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
                              "n_data_processes",
                              "experiment_name",
                              "n_prefetch",
                              "fixed_example_indices"};

/// Keys without a place here, and the reason.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kGone = {{
    {"code_root", "left out: the sources that `code` names are copied into the run by themselves"},
    {"fcond", "is Python: write it as eval_filter: {steps: [...], match: ..., where: ...}"},
    {"git", "left out: git's state is noted in the log and in outputs, nothing is committed"},
    {"error_on_timeout", "left out: data_timeout: 60s ends a run whose data hang"},
    {"stages", "left out: `stages` is a list here, [{train_ops: [train/d], for: 5}, ...]"},
    {"hook_freq", "left out: log_freq and each op's `when` say it"},
    {"project", "left out: -p names a run to resume"},
    {"edflow_version", "left out"},
    {"edflow", "left out"},
    {"val_freq", "left out: log_ops: [{op: validation/log_op, when: N}] says it"},
    {"nogpu", "left out: device: cpu"},
    {"bar_position", "left out"},
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
    const Value* root = edflow.find("data_root");
    if (root != nullptr && root->is_text()) data_root_ = root->as_text();
    for (const auto& [key, value] : edflow) {
      if (key != "data_root") take(key, value);
    }
    if (root != nullptr) {
      uses_root_ ? note("data_root", "becomes the path of the datasets") : own("data_root", *root);
    }
    end();
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
    if (key == "validation_dataset") return set("datasets/validation", dataset(key, value));
    if (key == "datasets") return take_datasets(value);
    if (key == "eval_pipeline") return take_eval_pipeline(value);
    if (key == "eval_hook") return take_eval_hook(value);
    if (key == "eval_functor") return take_functor(value);
    if (key == "integrations") return take_integrations(value);
    if (key == "debug") return take_debug(value);
    if (key == "lr") return take_lr(value);
    if (key == "beta1" || key == "beta2") return take_beta(key, value);
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

  /// A key of TFBaseTrainer, with its defaults.
  void take_beta(const std::string& key, const Value& value) {
    betas_[key == "beta1" ? 0 : 1] = value;
    set("optimizer/betas", Value::List{betas_[0], betas_[1]});
    note(key, "becomes optimizer/betas");
  }

  void take_datasets(const Value& value) {
    if (!value.is_map()) return set("datasets/train", dataset("datasets", value));
    for (const auto& [split, path] : value.as_map()) {
      set("datasets/" + split, dataset("datasets/" + split, path));
    }
  }

  /// A dataset of this program, or a dataset that the project's code must have.
  Value dataset(const std::string& key, const Value& value) {
    const std::string path = value.is_text() ? value.as_text() : "";
    const ShippedDataset* found = find_shipped(path);
    if (found == nullptr) {
      has_own_data_ = true;
      return component(datasets(), key, value, class_name_ + "Data");
    }
    std::string text(found->here);
    if (const size_t at = text.find("{}"); at != std::string::npos) {
      std::string quoted;
      for (const char c : data_root_) quoted += c == '\'' ? "''" : std::string(1, c);
      text.replace(at, 2, quoted);
      uses_root_ = true;
    }
    Value made = parse_yaml(text, {path, 0});
    note(key, fmt::format("{} becomes {}: {}", path, made.find("class")->as_text(), found->files));
    if (found->has_classes) result_.has_images = true;
    has_other_data_ |= !found->has_classes;
    return made;
  }

  /// The class for an import path.
  template <class Registry>
  Value component(const Registry& registry, const std::string& key, const Value& value,
                  const std::string& own_class) {
    if (!value.is_text()) {
      note(key, "is not an import path, and is left as it is");
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
    if (!value.is_map()) return note("eval_hook", "is not a map, and is left out");
    for (const auto& [key, below] : value.as_map()) {
      const std::string path = "eval_hook/" + key;
      if (key == "eval_callbacks") {
        take_callbacks(path, below);
      } else if (key == "eval_op" || key == "clean_after_callbacks") {
        set(path, below);
      } else {
        note(path, "no counterpart");
      }
    }
  }

  void take_eval_pipeline(const Value& value) {
    if (!value.is_map()) return note("eval_pipeline", "is not a map, and is left out");
    for (const auto& [key, below] : value.as_map()) {
      const std::string path = "eval_pipeline/" + key;
      if (key == "callback_kwargs" && below.is_map()) {
        callback_kwargs_ = below;
      } else if (key == "callbacks") {
        note(path, "becomes eval_hook/eval_callbacks");
        take_callbacks(path, below);
      } else {
        note(path, "no counterpart");
      }
    }
  }

  /// Takes the parameters of the callbacks that exist here, if all these parameters are known.
  void take_callback_kwargs() {
    for (const auto& [name, kwargs] : callback_kwargs_.as_map()) {
      const std::string path = "eval_pipeline/callback_kwargs/" + name;
      const Value* callback = result_.config.find("eval_hook/eval_callbacks/" + name);
      const Registration* registration =
          callback == nullptr ? nullptr : find_component("callback", callback->as_text());
      if (registration == nullptr || !kwargs.is_map()) {
        note(path, fmt::format("left out: {} is not a callback of this config", name));
        continue;
      }
      for (const auto& [key, value] : kwargs.as_map()) {
        const auto is_key = [&](const Parameter& each) { return each.name == key; };
        if (std::ranges::any_of(registration->about.parameters, is_key)) {
          set(path + "/" + key, value);
        } else {
          note(path + "/" + key, fmt::format("left out: {} has no such key", registration->name));
        }
      }
    }
  }

  /// Takes names with callbacks. A list, or a single import path, has no names: those of the
  /// functions become the names.
  void take_callbacks(const std::string& path, const Value& value) {
    if (value.is_map()) {
      for (const auto& [name, callback] : value.as_map()) take_callback(name, callback);
      return;
    }
    for (const Value& callback : value.is_list() ? value.as_list() : Value::List{value}) {
      if (!callback.is_text()) {
        note(path, "left out: expected import paths, found " + callback.describe());
      } else {
        take_callback(last_part(callback.as_text()), callback);
      }
    }
  }

  void take_callback(const std::string& name, const Value& callback) {
    const std::string path = "eval_hook/eval_callbacks/" + name;
    const std::string function = callback.is_text() ? last_part(callback.as_text()) : "";
    if (is_registered(callbacks(), function)) {
      set(path, function);
      return note(path, fmt::format("{} becomes {}, which is there: see `stepop list {}`",
                                    callback.as_text(), function, function));
    }
    note(path,
         fmt::format("left out: there is no callback {} here; register a function of your own, or "
                     "name a Python script: {}: ./my_callback.py",
                     callback.describe(), name));
  }

  void take_functor(const Value& value) {
    note("eval_functor",
         fmt::format("left out: {} is a class to be registered by STEPOP_REGISTER_EVAL_FUNCTOR",
                     value.describe()));
  }

  void take_integrations(const Value& value) {
    if (!value.is_map()) return note("integrations", "is not a map, and is left out");
    for (const auto& [key, below] : value.as_map()) {
      const std::string path = "integrations/" + key;
      if ((key == "tensorboard" || key == "tensorboardX") && below.is_map()) {
        take_integration(path, "integrations/tensorboard/", {"active", "handlers"}, below.as_map());
      } else if (key == "wandb" && below.is_map()) {
        take_integration(path, path + "/", {"active", "handlers", "project", "entity"},
                         below.as_map());
      } else if (key == "minimal_logging") {
        take_image_format(path, below);
      } else {
        const auto why = find_in(kGone, key);
        note(path, why.empty() ? "no counterpart" : std::string(why));
      }
    }
  }

  /// `{image_format: jpg}`: in which files pictures are written.
  void take_image_format(const std::string& path, const Value& below) {
    const Value* format = below.find("image_format");
    if (format == nullptr || !format->is_text()) return;
    const std::string& text = format->as_text();
    if (text == "jpg" || text == "jpeg") return set("log_images/format", Value("jpeg"));
    if (text != "png") note(path + "/image_format", "pictures are png or jpeg; they are PNG");
  }

  /// Kinds of logs; figures are images here.
  static Value without_figures(const Value& handlers) {
    if (!handlers.is_list()) return handlers;
    Value::List kinds;
    for (const Value& kind : handlers.as_list()) {
      if (!(kind == Value("figures"))) kinds.push_back(kind);
    }
    return kinds;
  }

  /// Keys in `same` become keys of `here`; all other keys get a note.
  void take_integration(const std::string& path, const std::string& here,
                        const std::vector<std::string_view>& same, const Value::Map& values) {
    for (const auto& [key, value] : values) {
      if (std::ranges::find(same, key) != same.end()) {
        set(here + key, key == "handlers" ? without_figures(value) : value);
      } else {
        const auto why = find_in(kGone, key);
        note(path + "/" + key, why.empty() ? "no counterpart" : std::string(why));
      }
    }
  }

  void take_debug(const Value& value) {
    if (!value.is_map()) return note("debug", "is not a map, and is left out");
    for (const auto& [key, below] : value.as_map()) {
      const bool is_known =
          key == "max_steps" || key == "max_examples" || key == "disable_integrations";
      is_known ? set("debug/" + key, below) : note("debug/" + key, "no counterpart");
    }
  }

  void own(const std::string& key, const Value& value) {
    result_.own.as_map().set(key, value);
    note(key,
         fmt::format("your own: your iterator reads it, context.config.get(\"{}\", ...); what your "
                     "network reads goes below model",
                     key));
  }

  /// Adds the parts of a training that edflow's code has in Python.
  void end() {
    take_callback_kwargs();
    if (result_.config.find("optimizer/class") == nullptr) {
      set("optimizer/class", "Adam");
      set("optimizer/lr", 1e-3);
      note("optimizer", "Adam with lr 1e-3, as there is no lr in the file: change it to yours");
    }
    const Value* perceptual = result_.config.find("losses/perceptual");
    if (is_vunet_ && perceptual != nullptr && find_in_map(*perceptual, "vgg19") == nullptr) {
      set("losses/perceptual/vgg19", "vgg19.safetensors");
      note("losses/perceptual",
           "vgg19 is the file of VGG19's weights: configs/vunet/README.md says how to make it");
    }
    const Value* size = result_.config.find("model/spatial_size");
    for (const char* split : {"datasets/train", "datasets/validation"}) {
      const Value* data = result_.config.find(split);
      if (data == nullptr || size == nullptr || find_in_map(*data, "size") == nullptr) continue;
      set(std::string(split) + "/size", Value(*size));
    }
    result_.has_images = result_.has_images && !has_own_data_ && !has_other_data_;
    result_.has_own_data = has_own_data_;
    if (result_.needs_code && result_.config.find("model") == nullptr) {
      set("model", class_name_ + "Network");
      note("model",
           fmt::format("is missing: {}Network, a class of your own to be filled in", class_name_));
    }
    const Value* model = result_.config.find("model");
    const bool is_own = model != nullptr && *model == Value(class_name_ + "Network");
    if (is_own && result_.has_images) {
      const bool is_cifar = result_.config.find("datasets/train/path") != nullptr;
      set("model", Value::Map{{"class", *model},
                              {"inputs", Value(int64_t{is_cifar ? 3 * 32 * 32 : 28 * 28})},
                              {"classes", Value(int64_t{10})}});
    } else if (result_.needs_code && has_other_data_) {
      note("datasets",
           fmt::format("{} reads `point` and `class` of a batch: write there what yours have; "
                       "--check shows it",
                       class_name_));
    }
  }

  void set(const std::string& path, Value value) { result_.set(path, std::move(value)); }
  void note(const std::string& key, std::string text) { result_.note(key, std::move(text)); }

  std::string class_name_;
  TranslatedConfig& result_;
  Value callback_kwargs_ = Value(Value::Map{});
  std::string data_root_ = "data";
  std::array<Value, 2> betas_ = {Value(0.5), Value(0.9)};
  bool uses_root_ = false;  ///< Whether a dataset uses it.
  bool is_vunet_ = false;
  bool has_own_data_ = false;    ///< Some datasets must come from the project's code.
  bool has_other_data_ = false;  ///< Some datasets of this program have no `class`.
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
