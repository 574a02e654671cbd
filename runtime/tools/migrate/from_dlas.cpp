#include "runtime/tools/migrate/from_dlas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/tools/migrate/from_dlas_datasets.h"
#include "runtime/tools/migrate/from_dlas_left_out.h"
#include "runtime/tools/migrate/from_dlas_steps.h"
#include "runtime/train/optim/dlas_schedules.h"

namespace stepop {
namespace {

/// Top-level keys that nothing reads there.
constexpr std::array<std::string_view, 3> kUnread = {"model", "scale", "distortion"};

/// The keys of `train` beside those of schedules that an ExtensibleTrainer has.
constexpr std::array<std::string_view, 8> kOfTrain = {
    "default_lr_scheme",      "warmup_iter", "force_lr",    "mega_batch_factor", "mod_batch_factor",
    "mod_batch_factor_every", "sort_key",    "auto_collate"};

class DlasTranslation {
 public:
  DlasTranslation(const Value& dlas, TranslatedConfig& result) : dlas_(dlas), result_(result) {}

  void run() {
    set("iterator", "ExtensibleTrainer");
    take_length();
    for (const auto& [key, value] : dlas_.as_map()) take(key, value);
    if (!unread_.empty()) {
      note(fmt::format("{}", fmt::join(unread_, ", ")), "nothing reads it there");
    }
    end();
  }

 private:
  void take(const std::string& key, const Value& value) {
    if (is_switched_off(value) && key != "gpu_ids") return;
    if (std::ranges::find(kUnread, key) != kUnread.end()) return unread_.push_back(key);
    if (key == "gpu_ids") return take_devices(value);
    if (key == "start_step") return take_start(value);
    if (key == "force_start_step") return take_forced_start(value);
    if (key == "keep_optimizer_states_on_cpu") return set(key, value);
    if (key == "fp16") return take_precision();
    if (key == "checkpointing_enabled") return set("checkpoint_modules", ".");
    if (key == "cuda_benchmarking_enabled") return set("cudnn_benchmark", true);
    if (key == "use_tb_logger") return set("integrations/tensorboard/active", true);
    if (key == "wandb") return set("integrations/wandb/active", true);
    if (key == "wandb_project_name") return set("integrations/wandb/project", value);
    if (!value.is_map() || key == "dataset") return leave_out(key, value);
    if (key == "datasets") return translate_dlas_datasets(value, result_);
    if (key == "networks") return translate_dlas_steps(dlas_, result_);
    if (key == "steps") return;  // translated together with the networks
    if (key == "path") return take_path(value);
    if (key == "train") return take_train(value);
    if (key == "eval") return take_eval(value);
    if (key == "logger") return take_logger(value);
    leave_out(key, value);
  }

  void take_length() {
    const Value* iterations = dlas_.find("train/niter");
    if (iterations != nullptr) return set("num_steps", *iterations);
    note("train/niter", "is missing: num_steps says when a training ends");
  }

  void take_devices(const Value& value) {
    if (!value.is_list()) return;
    if (value.as_list().empty()) set("device", "cpu");
    if (value.as_list().size() > 1) {
      note("gpu_ids",
           "one process uses one device; --processes N trains with several processes, each on a "
           "device of its own");
    }
  }

  void take_start(const Value& value) {
    if (find_in_map(dlas_, "force_start_step") == nullptr) set("start_step", value);
  }

  void take_forced_start(const Value& value) {
    set("start_step", value);
    note("force_start_step", "becomes start_step: a resumed run keeps its own step");
  }

  void take_precision() {
    set("precision", "float16");
    note("fp16", "becomes precision: float16");
  }

  void take_path(const Value& paths) {
    const Value* strict = find_in_map(paths, "strict_load");
    Value::List entries;
    if (const Value* parts = result_.config.find("init_from")) entries = parts->as_list();
    const size_t of_parts = entries.size();
    for (const auto& [key, value] : paths.as_map()) {
      constexpr std::string_view kModel = "pretrain_model_";
      constexpr std::string_view kBase = "pretrain_base_path_";
      const bool is_base = key.starts_with(kBase);
      const std::string used_by =
          is_base ? fmt::format("{}{}", kModel, key.substr(kBase.size())) : "";
      if (key == "strict_load" || (is_base && paths.as_map().contains(used_by))) continue;
      if (is_base) {
        note("path/" + key, fmt::format("is for {}, and there is none", used_by));
        continue;
      }
      if (!key.starts_with(kModel) || value.is_null()) {
        leave_out("path/" + key, value);
        continue;
      }
      const std::string network = key.substr(kModel.size());
      const Value* networks = dlas_.find("networks/" + network);
      if (!value.is_text() || networks == nullptr) {
        note("path/" + key, "left out: there is no such network");
        continue;
      }
      Value::Map entry;
      entry.set("path", value);
      entry.set("network", Value(network));
      if (const Value* base = find_in_map(paths, std::string(kBase) + network)) {
        entry.set("prefix", *base);
      }
      entry.set("strict", Value(strict != nullptr && *strict == Value(true)));
      entries.emplace_back(std::move(entry));
      note("path/" + key, "becomes init_from; its file is relative to this one now");
    }
    if (entries.size() == of_parts && strict != nullptr) leave_out("path/strict_load", *strict);
    if (!entries.empty()) set("init_from", Value(std::move(entries)));
  }

  void take_train(const Value& train) {
    const Value* scheme = find_in_map(train, "default_lr_scheme");
    for (const auto& [key, value] : train.as_map()) {
      const std::string path = "train/" + key;
      if (value.is_null() || key == "niter") continue;
      const auto* const of_schedule =
          std::ranges::find(kDlasScheduleKeys, key, &DlasScheduleKey::name);
      if (of_schedule != kDlasScheduleKeys.end()) {
        const bool is_read =
            scheme != nullptr && scheme->is_text() && of_schedule->is_read_there(scheme->as_text());
        is_read ? set(path, value) : note(path, "left out: another scheme reads it");
      } else if (key == "manual_seed") {
        set("seed", value);
      } else if (key == "val_freq" || key == "val_freq_megasamples") {
        take_frequency(key, value);
      } else if (key == "ema_enabled" || key == "ema_rate") {
        take_average(train);
      } else if (key == "ema_on_cpu") {
        take_place_of_average(value);
      } else if (key == "batch_size_optimizer" ||
                 key == "mod_batch_factor_also_disable_checkpointing") {
        leave_out(path, value);
      } else if (std::ranges::find(kOfTrain, key) == kOfTrain.end()) {
        note(path, "left out: nothing reads it there");
      } else if (key != "warmup_iter" || !is_switched_off(value)) {
        set(path, value);
      }
    }
  }

  void take_average(const Value& train) {
    const Value* is_on = find_in_map(train, "ema_enabled");
    if (is_on != nullptr && *is_on == Value(false)) return;
    const Value* rate = find_in_map(train, "ema_rate");
    set("ema/decay", rate != nullptr ? *rate : Value(0.999));
  }

  void take_place_of_average(const Value& on_cpu) {
    if (is_switched_off(on_cpu)) return;
    const Value* is_on = dlas_.find("train/ema_enabled");
    if (is_on != nullptr && *is_on == Value(false)) {
      return note("train/ema_on_cpu", "left out, as ema_enabled is false");
    }
    set("ema/on_cpu", on_cpu);  // there are averages there, unless they are switched off
  }

  void take_frequency(const std::string& key, const Value& value) {
    const Value* batch_size = dlas_.find("datasets/train/batch_size");
    if (dlas_.find("datasets/val") == nullptr && !has_flow_evaluator()) {
      return note("train/" + key, "left out: there is no datasets/val");
    }
    if (key == "val_freq") return set("eval_hook/freq", value);
    if (batch_size == nullptr || !batch_size->is_int() || batch_size->as_int() < 1) return;
    const double samples = (value.is_int()     ? static_cast<double>(value.as_int())
                            : value.is_float() ? value.as_float()
                                               : 1) *
                           1e6;
    const double steps = std::ceil(samples / static_cast<double>(batch_size->as_int()));
    set("eval_hook/freq", static_cast<int64_t>(std::max(steps, 1.0)));
  }

  void take_eval(const Value& eval) {
    for (const auto& [key, value] : eval.as_map()) {
      if (key == "output_state") {
        take_output(value);
      } else if (key == "evaluators" && value.is_map()) {
        for (const auto& [name, evaluator] : value.as_map()) take_evaluator(name, evaluator);
      } else if (key != "injectors") {
        leave_out("eval/" + key, value);
      }
    }
  }

  void take_output(const Value& value) {
    std::vector<std::string> made = {"hq", "lq"};
    add_texts(*dlas_.find("steps"), made);
    if (const Value* injectors = dlas_.find("eval/injectors")) add_texts(*injectors, made);
    const bool is_lost = dlas_.find("datasets/val") == nullptr && value.is_text() &&
                         std::ranges::find(made, value.as_text()) == made.end();
    is_lost ? note("eval/output_state", value.as_text() + " is left out: nothing makes it")
            : set("eval/output_state", value);
  }

  static bool is_of_flow(const Value& evaluator) {
    const Value* type = find_in_map(evaluator, "type");
    return type != nullptr &&
           (*type == Value("flow_gaussian_nll") || *type == Value("flownet_gaussian"));
  }

  /// Whether something is evaluated without `datasets/val`.
  bool has_flow_evaluator() const {
    const Value* all = dlas_.find("eval/evaluators");
    return all != nullptr && all->is_map() &&
           std::ranges::any_of(all->as_map(),
                               [](const auto& entry) { return is_of_flow(entry.second); });
  }

  void take_evaluator(const std::string& name, const Value& evaluator) {
    const Value* type = find_in_map(evaluator, "type");
    const std::string path = "eval/evaluators/" + name;
    if (is_of_flow(evaluator)) return take_flow_evaluator(path, name, evaluator);
    if (type != nullptr && type->is_text() &&
        find_component("evaluator", type->as_text()) != nullptr) {
      return set(path, evaluator);
    }
    note(path, fmt::format("left out: {} is not here; `stepop list evaluator` shows what is",
                           type == nullptr ? "its type" : type->describe()));
  }

  /// Its dataset, of image folders, is one of `datasets` here.
  void take_flow_evaluator(const std::string& path, const std::string& name,
                           const Value& evaluator) {
    if (*find_in_map(evaluator, "type") == Value("flownet_gaussian")) {
      note(path + "/type",
           "flownet_gaussian becomes flow_gaussian_nll, its name in the code there");
    }
    set(path + "/type", "flow_gaussian_nll");
    if (const Value* network = find_in_map(evaluator, "for")) set(path + "/for", *network);
    const Value* dataset = find_in_map(evaluator, "dataset");
    if (dataset == nullptr || !dataset->is_map()) return;
    Value copy = *dataset;
    copy.as_map().set("mode", Value("imagefolder"));
    copy.as_map().erase("eval");
    translate_dlas_dataset(path + "/dataset", "datasets/" + name, copy, result_);
    set(path + "/dataset", Value(name));
    if (const Value* size = find_in_map(evaluator, "batch_size")) set("test_batch_size", *size);
  }

  /// Names in `visuals` that nothing makes are left out there without a word.
  void take_visuals(const Value& visuals) {
    std::vector<std::string> made = {"hq", "lq", "aug1", "aug2"};
    if (const Value* datasets = dlas_.find("datasets/train");
        datasets != nullptr && datasets->is_map()) {
      for (const auto& [name, inner] : datasets->as_map()) {
        if (inner.is_map()) made.push_back(name + "_");  // left_hq, of `combined`
      }
    }
    add_texts(*dlas_.find("steps"), made);
    Value::List kept;
    for (const auto& name : visuals.as_list()) {
      const bool is_made = !name.is_text() || std::ranges::any_of(made, [&](const auto& each) {
        return name.as_text().starts_with(each);  // image_patch makes gen_top_left of gen
      });
      is_made ? kept.push_back(name)
              : note("logger/visuals", name.as_text() + " is left out: nothing makes it");
    }
    set("logger/visuals", Value(std::move(kept)));
  }

  static void add_texts(const Value& value, std::vector<std::string>& texts) {
    if (value.is_text()) texts.push_back(value.as_text());
    if (value.is_map()) {
      for (const auto& [key, below] : value.as_map()) add_texts(below, texts);
    } else if (value.is_list()) {
      for (const auto& below : value.as_list()) add_texts(below, texts);
    }
  }

  void take_logger(const Value& logger) {
    for (const auto& [key, value] : logger.as_map()) {
      if (key == "print_freq") {
        set("log_freq", value);
      } else if (key == "save_checkpoint_freq") {
        set("ckpt_freq", value);
      } else if (key == "visuals" && value.is_list()) {
        take_visuals(value);
      } else if (key == "visual_debug_rate") {
        set("logger/" + key, value);
      } else {
        leave_out("logger/" + key, value);
      }
    }
  }

  /// Translates the keys that depend on several sections.
  void end() {
    take_split_of_evaluation();
    // Noise is in [0, 1], but pictures from files are in [-1, 1].
    const Value* data = result_.config.find("datasets/train/class");
    const bool is_noise = data != nullptr && *data == Value("RandomTensors");
    if (is_noise && result_.config.find("logger/visuals") != nullptr) {
      set("logger/reverse_n1_to_1", false);
    }
    const std::string needed = result_.trains ? "datasets/train" : "datasets/validation";
    if (dlas_.find("datasets/train") == nullptr && result_.config.find(needed) == nullptr) {
      note(needed, "is missing: `stepop list dataset` shows what there is");
    }
    if (result_.config.find("datasets/validation") == nullptr) return;
    const Value* mode = dlas_.find("datasets/val/mode");
    if (mode != nullptr && *mode == Value("fullimage")) take_whole_pictures();
    if (result_.config.find("eval/output_state") == nullptr &&
        result_.config.find("eval/evaluators") == nullptr) {
      set("eval_hook", Value());
      note("datasets/val",
           "nothing is evaluated: eval/output_state names keys of the state that "
           "an evaluation writes");
    }
  }

  /// Where no step trains, the pictures of datasets/train are evaluated, as by test.py there.
  void take_split_of_evaluation() {
    const Value* steps = result_.config.find("steps");
    if (steps == nullptr) return;
    result_.trains = std::ranges::any_of(steps->as_map(), [](const auto& step) {
      return find_in_map(step.second, "optimizer_params") != nullptr;
    });
    const Value* train = result_.config.find("datasets/train");
    if (result_.trains || train == nullptr || result_.config.find("datasets/validation") != nullptr)
      return;
    const Value data = *train;
    set("datasets/validation", data);
    result_.config.find("datasets")->as_map().erase("train");
    note("datasets/train",
         "is datasets/validation here: no step trains, and an evaluation reads it");
  }

  /// Pictures of several sizes fit into no batch and no array of outputs.
  void take_whole_pictures() {
    if (result_.config.find("log_ops") == nullptr) set("log_ops", Value::List{"train/log_op"});
    const Value* output = result_.config.find("eval/output_state");
    if (output == nullptr || !output->is_text()) return;
    const Value made = *output;
    result_.config.find("eval")->as_map().erase("output_state");
    if (result_.config.find("eval/evaluators") == nullptr) {
      set("eval/evaluators/psnr/type", "psnr");
      set("eval/evaluators/psnr/real", "hq");
      set("eval/evaluators/psnr/fake", made);
    }
    note("eval/output_state",
         "left out, and log_ops without the validation: whole pictures have several sizes, which "
         "fit "
         "into no batch; psnr measures them one at a time. With `size` or `crop` of "
         "datasets/validation both can come back");
  }

  void set(std::string_view path, Value value) { result_.set(path, std::move(value)); }
  void note(const std::string& key, std::string text) { result_.note(key, std::move(text)); }

  void leave_out(const std::string& path, const Value& value) {
    if (!is_switched_off(value)) note(path, why_dlas_key_is_left_out(path));
  }

  const Value& dlas_;
  TranslatedConfig& result_;
  std::vector<std::string> unread_;
};

}  // namespace

TranslatedConfig translate_dlas(const Value& dlas) {
  Value read = dlas;
  read_words_of_truth(read);
  for (const char* key : {"networks", "steps"}) {
    const Value* found = find_in_map(read, key);
    if (found != nullptr && found->is_map()) continue;
    throw UsageError(
        fmt::format("{}: not a config of DL-Art-School's ExtensibleTrainer: it has no "
                    "map of {}",
                    dlas.origin().file, key));
  }
  TranslatedConfig result;
  DlasTranslation(read, result).run();
  return result;
}

void refuse_dlas(const Config& config) {
  const Value* root = config.peek();
  if (root == nullptr || find_in_map(*root, "iterator") != nullptr) return;
  if (find_in_map(*root, "steps") == nullptr || find_in_map(*root, "networks") == nullptr) return;
  throw config.error("steps",
                     "steps and networks, and no iterator: `stepop new NAME --from-dlas FILE` "
                     "translates a config of DL-Art-School; one of this program has the key "
                     "iterator: ExtensibleTrainer");
}

}  // namespace stepop
