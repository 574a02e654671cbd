// Keys of the state that do not fit together, and what else steps can get wrong.
#include <doctest/doctest.h>

#include <string>

#include "runtime/core/base/error.h"
#include "tests/iterators/extensible/two_steps.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_steps_mistakes_test {

using namespace extensible_two_steps;

/// What is wrong with steps, as the checks before a training say it.
std::string mistake(const std::string& steps) {
  return message_of([&] {
    TestRun run(config(steps));
    run.session.check();
  });
}

std::string with_change(const std::string& from, const std::string& to) {
  std::string text = two_steps("");
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("what nothing makes, what is made twice or too late is found before the first batch") {
  CHECK(mistake(two_steps("")) == "no error");
  CHECK(mistake(with_change("fake: made", "fake: maed")) ==
        "test.yaml:18: steps/first/losses/p/fake: nothing makes \"maed\"; there are: x, made, y, "
        "index; did you mean made?");
  CHECK(mistake(with_change("in: x, out: made", "in: of_b, out: made")) ==
        "test.yaml:17: steps/first/injectors/made/in: in iteration 0 nothing has made \"of_b\" "
        "before: it is made by test.yaml:23: steps/second/injectors/of_b, which comes later, or is "
        "off then; there are: y, x, index");
  CHECK(
      mistake(with_change("of_b: {type: generator, generator: b, in: made, out: of_b",
                          "of_b: {type: generator, generator: b, in: y, out: made")) ==
      "test.yaml:23: steps/second/injectors/of_b/out: \"made\" is made twice in iteration 0: first "
      "by test.yaml:17: steps/first/injectors/made; give one of them another name");
  CHECK(mistake(with_change("out: of_b", "out: x"))
            .find("\"x\" is made twice in iteration 0: first by the batch") != std::string::npos);
  // Only in iterations that a gate leaves.
  CHECK(mistake(with_change("in: x, out: made", "in: x, out: made, after: 1000"))
            .starts_with("test.yaml:18: steps/first/losses/p/fake: in iteration 0 nothing has made "
                         "\"made\" before: it is made by test.yaml:17: "
                         "steps/first/injectors/made, which comes later, or is off then"));
  CHECK(mistake(with_change("in: x, out: made", "in: x, out: made, every: 7"))
            .find("in iteration 1 nothing has made \"made\"") != std::string::npos);
  CHECK(mistake(two_steps("step_outputs: [nothing]")) ==
        "test.yaml:19: steps/second: step_outputs: the step does not make \"nothing\"; it makes: "
        "of_b");
  CHECK(mistake(with_change("training: b", "training: b\n    after: 4\n    requires: [late]"))
            .find("steps/second/requires: nothing makes \"late\"; there are: x, y, index, made") !=
        std::string::npos);
}

TEST_CASE("mistakes in a step name the place and what there is") {
  CHECK(mistake(with_change("generator: b", "generator: c"))
            .starts_with("test.yaml:23: steps/second/injectors/of_b/generator: no network \"c\"; "
                         "there are: a, b"));
  CHECK(mistake(with_change("training: b", "training: bb"))
            .find("steps/second/training: no network \"bb\"; there are: a, b") !=
        std::string::npos);
  CHECK(mistake(with_change("type: pix", "type: pxi"))
            .find("steps/first/losses/p/type: unknown loss term \"pxi\": did you mean \"pix\"? "
                  "Known are: pix, ") != std::string::npos);
  CHECK(mistake(with_change("criterion: l2", "criterion: l3"))
            .find("steps/first/losses/p/criterion: expected l1, l2, cosine or a loss function (") !=
        std::string::npos);
  CHECK(mistake(with_change(", weight: 1}", "}")).find("steps/first/losses/p/weight: missing") !=
        std::string::npos);
  CHECK(mistake(with_change("optimizer_params: {lr: 0.05}",
                            "optimizer: adamm\n    "
                            "optimizer_params: {lr: 0.05}"))
            .find("steps/first/optimizer: unknown optimizer \"adamm\"; there are: adam, adamw, "
                  "lamb, lars, sgd; did you mean adam?") != std::string::npos);
  CHECK(mistake(with_change("    optimizer_params: {lr: 0.05}\n", ""))
            .find("steps/first/optimizer_params: missing: the losses of the step would train "
                  "nothing") != std::string::npos);
  CHECK(mistake(with_change("type: generator, generator: a", "type: generator, generatr: a"))
            .find("steps/first/injectors/made/generatr: did you mean "
                  "\"steps/first/injectors/made/generator\", which is missing?") !=
        std::string::npos);
  CHECK(mistake(with_change("real: y, fake: made", "real: y, fake: made, wieght: 2"))
            .find("unknown key \"steps/first/losses/p/wieght\": did you mean "
                  "\"steps/first/losses/p/weight\"?") != std::string::npos);
  CHECK(mistake(two_steps("every: 0")).find("steps/second/every: ") != std::string::npos);
  CHECK(mistake(two_steps("after: 5\n    before: 3"))
            .find("steps/second/before: it is never on: after is 5, before is 3") !=
        std::string::npos);
  CHECK(mistake("steps: {s: {training: a, optimizer_params: null}}") ==
        "test.yaml:9: networks/a: no step trains it; trainable: false says that it is meant so");
  CHECK(mistake("steps: []") ==
        "test.yaml:12: steps: expected a map of steps, such as {generator: {training: generator, "
        "injectors: {...}, losses: {...}}}, found []");
}

TEST_CASE("an error in a part names the part") {
  const std::string message = message_of([] {
    TestRun run(config(with_change("criterion: l2, real: y", "criterion: l2, real: x"), 1));
    run.train();
  });
  CHECK(message.find("test.yaml:18: steps/first/losses/p (pix): expected two tensors of one shape, "
                     "found ") != std::string::npos);
}

TEST_CASE("what is logged of the training, and checked before it, are its patches") {
  TestRun run(R"(
iterator: ExtensibleTrainer
num_steps: 3
num_threads: 1
batch_size: 2
log_freq: 1
train_ops: [{op: train/train_op, when: 2}]
datasets: {train: {class: RandomTensors, size: 8, tensors: {hq: [3, 48, 48]}}}
networks:
  discriminator: {type: discriminator, which_model: discriminator_vgg_128_gn, nf: 8, image_size: 32}
steps:
  discriminator:
    training: discriminator
    optimizer_params: {lr: 0.001}
    injectors:
      phq: {type: image_patch, patch_size: 32, in: hq, out: phq}
      low: {type: image_patch, patch_size: 32, in: hq, out: low}
    losses: {gan_d: {type: discriminator_gan, gan_type: gan, weight: 1, real: phq, fake: low}}
)");
  run.session.check();
  run.train();
  CHECK(run.metrics().at(0).contains("train/log_op/loss_gan_d"));  // no train op was due
  CHECK(run.metrics().at(1).contains("train/train_op/loss_gan_d"));
}

}  // namespace extensible_steps_mistakes_test
}  // namespace stepop
