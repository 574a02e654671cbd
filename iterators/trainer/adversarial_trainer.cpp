#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iterators/trainer/trainer.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// The numbers of steps for which each part is trained in turn, `ratios: [main, discriminator]`.
struct Ratios {
  Ratios(const std::array<int64_t, 2>& ratios, const Config& config)
      : main(ratios[0]), all(ratios[0] + ratios[1]) {
    if (all > 0) return;
    throw config.error("ratios",
                       "expected two numbers of steps, [main, discriminator], of 0 or more and "
                       "not both 0, such as [1, 1]");
  }

  /// Whether the step after `step` complete steps trains the main part. Steps count over the whole
  /// training, so that a resume is in the same phase.
  bool is_main(int64_t step) const { return step % all < main; }
  bool has_both() const { return main > 0 && main < all; }

  int64_t main;
  int64_t all;
};

/// Trains the two competing parts of a model in turn, like game_gen's AdversarialTrainer.
class AdversarialTrainer : public LossModelTrainer {
 public:
  struct Params {
    std::array<int64_t, 2> ratios = {1, 1};
    std::optional<std::vector<std::string>> main;
    std::optional<std::vector<std::string>> discriminator;

    void declare(Parameters& p) {
      p.add("ratios", ratios, "[main, discriminator]: steps in which each is trained, in turn",
            at_least(0));
      p.add("focus/main", main,
            "sub-modules that are the main part; by default those of the model's focus_main()");
      p.add("focus/discriminator", discriminator,
            "sub-modules that compete with it; by default those of the model's focus_disc()");
      p.describe({"discriminator_optimizer",
                  "none",
                  "for the discriminator; else optimizer trains both",
                  false,
                  {"component optimizer"}});
      LossModelTrainer::declare(p);
    }
  };

  AdversarialTrainer(const Params& params, const Context& context)
      : LossModelTrainer(context),
        adversarial_(context.network<AdversarialModel>()),
        ratios_(params.ratios, config()),
        main_names_(params.main),
        disc_names_(params.discriminator) {
    if (config().has("freeze")) {
      throw config().error("freeze",
                           "AdversarialTrainer says itself what is trained when: leave the "
                           "sub-modules out of focus/main and focus/discriminator instead");
    }
    if (main_names_.has_value() != disc_names_.has_value()) {
      throw config().error("focus", "expected both parts, main and discriminator");
    }
    const NamedParameters of_disc = parameters_in_focus(false);
    const NamedParameters of_main = parameters_in_focus(true);
    if (config().has("discriminator_optimizer")) {
      main_update_ = &context.update_of("optimizer", of_main);
      disc_update_ = &context.update_of("discriminator_optimizer", of_disc);
      return;
    }
    NamedParameters all = of_main;
    for (const auto& parameter : of_disc) {
      if (!contains(of_main, parameter.first)) all.push_back(parameter);
    }
    main_update_ = disc_update_ = &context.update_of("optimizer", all);
  }

  StepOps step_op(const Batch& batch) override {
    // The check before a training sees one batch, in the first phase; this tries the other phase.
    const bool is_check = !context().position.has_begun_step && at::GradMode::is_enabled();
    if (is_check && !was_checked_ && ratios_.has_both()) {
      was_checked_ = true;
      asks_for_other_ = true;
      const StepOps unused = LossModelTrainer::step_op(batch);
      asks_for_other_ = false;
    }
    return LossModelTrainer::step_op(batch);
  }

 protected:
  void before_forward(bool trains) override {
    const bool is_main = !trains || ratios_.is_main(global_step()) != asks_for_other_;
    if (is_main == is_main_) return;
    set_focus(is_main);
  }
  Update& update() override { return is_main_ ? *main_update_ : *disc_update_; }
  std::string loss_name() const override { return is_main_ ? "loss" : "discriminator_loss"; }

 private:
  static bool contains(const NamedParameters& parameters, const std::string& name) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const auto& parameter) { return parameter.first == name; });
  }

  void set_focus(bool is_main) {
    is_main_ = is_main;
    adversarial_->set_main_focus(is_main);
    const auto& names = is_main ? main_names_ : disc_names_;
    if (names) {
      try {
        adversarial_->train_only(*names);
      } catch (const Error& error) {
        throw config().error(is_main ? "focus/main" : "focus/discriminator", error.what());
      }
    } else if (is_main) {
      adversarial_->focus_main();
    } else {
      adversarial_->focus_disc();
    }
  }

  /// The parameters that this focus trains. Throws UsageError when the focus trains all or none.
  NamedParameters parameters_in_focus(bool is_main) {
    set_focus(is_main);
    NamedParameters trained;
    trained.networks = {"model"};
    bool are_all_trained = true;
    for (const auto& parameter : adversarial_->named_parameters()) {
      if (parameter.value().requires_grad()) {
        trained.emplace_back(parameter.key(), parameter.value());
      } else {
        are_all_trained = false;
      }
    }
    if (trained.empty() || are_all_trained) {
      std::vector<std::string> names;
      for (const auto& child : adversarial_->named_children()) names.push_back(child.key());
      throw config().error(
          "model",
          fmt::format("with the focus on the {} {} of its parameters are trained: override "
                      "focus_main() and focus_disc(), or name sub-modules in the config, focus: "
                      "{{main: [...], discriminator: [...]}}; there are: {}",
                      is_main ? "main part" : "discriminator", trained.empty() ? "none" : "all",
                      list_text(names)));
    }
    return trained;
  }

  std::shared_ptr<AdversarialModel> adversarial_;
  Ratios ratios_;
  std::optional<std::vector<std::string>> main_names_;
  std::optional<std::vector<std::string>> disc_names_;
  bool is_main_ = true;
  bool was_checked_ = false;
  bool asks_for_other_ = false;  ///< before_forward sets the phase that is not the step's.
  Update* main_update_ = nullptr;
  Update* disc_update_ = nullptr;
};

STEPOP_REGISTER_ITERATOR(AdversarialTrainer, {"Trains a model of two parts that compete "
                                              "(AdversarialModel), in turn."});

}  // namespace
}  // namespace stepop
