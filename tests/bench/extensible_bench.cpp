// Steps of ExtensibleTrainer against the same training written by hand as an iterator, and against
// DL-Art-School's own loop in Python.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/rand_like.h>
#include <c10/core/DeviceType.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "iterators/losses/adversarial.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {
namespace {

constexpr int64_t kSteps = 20;  ///< Of a portion: some 50 ms.
constexpr int64_t kParts = 2;
constexpr double kNoise = 0.004;

const std::string kData = R"(
batch_size: 4
log_ops: []
datasets: {train: {class: RandomTensors, size: 64, tensors: {hq: [3, 16, 16], lq: [3, 8, 8]}}}
networks:
  generator: {which_model: toy_g, nf: 8, scale: 2}
  discriminator: {which_model: toy_d, nf: 8}
)";

/// configs/extensible/toy_srgan.yaml from the first step on, without its pictures.
const std::string kByConfig = kData + R"(
iterator: ExtensibleTrainer
steps:
  discriminator:
    training: discriminator
    optimizer_params: {lr: 0.001, beta1: 0.9, beta2: 0.99}
    clip_grad_eps: 1.0
    injectors:
      d_fake: {type: generator, generator: generator, grad: false, in: lq, out: d_gen}
    losses:
      gan_d: {type: discriminator_gan, gan_type: gan, weight: 1, noise: 0.004,
              gradient_penalty: true, real: hq, fake: d_gen}
    step_outputs: [d_gen]
  generator:
    training: generator
    optimizer_params: {lr: 0.001, beta1: 0.9, beta2: 0.99}
    clip_grad_eps: 1.0
    injectors:
      g_fake: {type: generator, generator: generator, in: lq, out: gen}
    losses:
      pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}
      gan_g: {type: generator_gan, gan_type: gan, weight: 0.005, noise: 0.004,
              discriminator: discriminator, real: hq, fake: gen}
train: {mega_batch_factor: 2}
)";

const std::string kByHand = kData + R"(
iterator: ToySrganByHand
discriminator_optimizer: {class: AdamW, lr: 0.001, betas: [0.9, 0.99], weight_decay: 0,
                          clip_norm: 1, clip_by: group, groups: [{match: bias, weight_decay: 0}]}
generator_optimizer: {class: AdamW, lr: 0.001, betas: [0.9, 0.99], weight_decay: 0, clip_norm: 1,
                      clip_by: group, groups: [{match: "bias|norm", weight_decay: 0}]}
)";

/// The training of kByConfig as a person would write it.
class ToySrganByHand : public Iterator {
 public:
  explicit ToySrganByHand(const Context& context)
      : Iterator(context),
        generator_(context.network<Network>("generator")),
        discriminator_(context.network<Network>("discriminator")),
        of_generator_(context.update("generator_optimizer", {"generator"})),
        of_discriminator_(context.update("discriminator_optimizer", {"discriminator"})) {}

  StepOps step_op(const Batch& batch) override {
    return {.train_op = [=, this] {
      Scalars scalars;
      train_discriminator(batch["hq"], batch["lq"], scalars);
      train_generator(batch["hq"], batch["lq"], scalars);
      return scalars;
    }};
  }

 private:
  static at::Tensor noisy(const at::Tensor& image) { return image + at::rand_like(image) * kNoise; }

  /// Means over the parts of the batch, for the log.
  static void add(Scalars& scalars, const std::string& name, const at::Tensor& value) {
    const at::Tensor share = value.detach() * (1.0 / kParts);
    const Scalar* before = scalars.find(name);
    scalars.set(name, before == nullptr ? share : *before->tensor() + share);
  }

  void train_discriminator(const at::Tensor& hq, const at::Tensor& lq, Scalars& scalars) {
    for (int64_t part = 0; part < kParts; ++part) {
      at::Tensor fake;
      {
        const at::NoGradGuard no_grad;
        generator_->eval();
        fake = generator_->forward(lq.chunk(kParts)[static_cast<size_t>(part)]);
        generator_->train();
      }
      const at::Tensor real = hq.chunk(kParts)[static_cast<size_t>(part)].detach();
      real.requires_grad_();
      const at::Tensor of_real = discriminator_->forward(noisy(real));
      const at::Tensor of_fake = discriminator_->forward(noisy(fake));
      const at::Tensor penalty =
          losses::unit_norm_penalty(losses::input_gradient(of_real, real)) * 10;
      const at::Tensor loss =
          losses::discriminator_loss(losses::GanType::kGan, of_real, of_fake) + penalty;
      of_discriminator_.backward(loss * (1.0 / kParts));
      add(scalars, "loss_gan_d", loss);
      add(scalars, "loss_gan_d_d_real", of_real.detach().mean());
      add(scalars, "loss_gan_d_d_fake", of_fake.detach().mean());
      add(scalars, "loss_gan_d_gradient_penalty", penalty);
    }
    of_discriminator_.apply();
  }

  void train_generator(const at::Tensor& hq, const at::Tensor& lq, Scalars& scalars) {
    for (int64_t part = 0; part < kParts; ++part) {
      const at::Tensor real = hq.chunk(kParts)[static_cast<size_t>(part)];
      const at::Tensor fake = generator_->forward(lq.chunk(kParts)[static_cast<size_t>(part)]);
      const at::Tensor of_fake = discriminator_->forward(noisy(fake));
      const at::Tensor pix = at::l1_loss(fake, real);
      const at::Tensor gan = losses::generator_loss(losses::GanType::kGan, {}, of_fake);
      const at::Tensor loss = pix + gan * 0.005;
      of_generator_.backward(loss * (1.0 / kParts));
      add(scalars, "loss_pix", pix);
      add(scalars, "loss_gan_g", gan);
      add(scalars, "loss_gan_g_d_fake", of_fake.detach().mean());
      add(scalars, "loss_generator_total", loss);
    }
    of_generator_.apply();
  }

  std::shared_ptr<Network> generator_;
  std::shared_ptr<Network> discriminator_;
  Update& of_generator_;
  Update& of_discriminator_;
};
STEPOP_REGISTER_ITERATOR(ToySrganByHand, {"For benchmarks.", {}});

/// A training in a thread of its own, which trains a portion of its steps when it is asked to.
class TrainingAside : private Hook {
 public:
  explicit TrainingAside(std::string yaml)
      : threads_(at::get_num_threads()), thread_([this, yaml = std::move(yaml)] { run(yaml); }) {
    wait_for(kIdle);
  }

  ~TrainingAside() {
    set(kEnding);
    thread_.join();
  }

  /// Waits a little before and after, as Process::ask_seconds does.
  double run_portion() {
    constexpr std::chrono::milliseconds kRest{30};
    std::this_thread::sleep_for(kRest);
    set(kRunning);
    wait_for(kIdle);
    std::this_thread::sleep_for(kRest);
    return seconds_;
  }

 private:
  enum State { kStarting, kIdle, kRunning, kEnding };
  struct End : std::exception {};

  void run(const std::string& yaml) {
    at::set_num_threads(threads_);
    try {
      train(yaml, 1'000'000, this);
    } catch (const End&) {
    }
  }

  void before_step(int64_t step) override {
    if (step % kSteps != 0) return;
    seconds_ = watch_.seconds();
    std::unique_lock lock(mutex_);
    state_ = state_ == kEnding ? kEnding : kIdle;
    changed_.notify_all();
    changed_.wait(lock, [&] { return state_ == kRunning || state_ == kEnding; });
    if (state_ == kEnding) throw End();
    watch_ = Stopwatch();
  }

  void set(State state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_all();
  }

  void wait_for(State state) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ == state; });
  }

  int threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = kStarting;
  double seconds_ = 0;
  Stopwatch watch_;
  std::thread thread_;
};

/// The most memory of tensors at once in some steps, in bytes. It counts from before the training
/// on: of what is older, LibTorch does not know the size.
class MemoryOfSteps : public Hook {
 public:
  void before_step(int64_t step) override {
    if (step == 5) memory_.begin_part();
  }
  void after_step(int64_t step) override {
    if (step == 10) most = memory_.most_of_part(c10::kCPU);
  }
  int64_t most = 0;

 private:
  TensorMemory memory_;
};

int64_t memory_of(const std::string& yaml) {
  MemoryOfSteps hook;
  train(yaml + "n_data_processes: 0\n", 12, &hook);  // what another thread makes does not count
  return hook.most;
}

/// A row: our steps and those of `other` take turns.
void compare_with(const std::string& what, const std::string& yaml, const std::string& baseline,
                  const Portion& other) {
  const auto times = take_turns_with_training(yaml, kSteps, /*rounds=*/200, {other});
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(kSteps), median(times[i]), "steps");
  };
  print_row({what, baseline, speedup(times[0], times[1]), text(0), text(1)});
}

void compare_steps(int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  const std::string what = fmt::format("toy_srgan, {} thread{}", threads, threads == 1 ? "" : "s");
  const std::string of_threads = fmt::format("num_threads: {}\n", threads);
  {
    TrainingAside by_hand(kByHand + of_threads);
    compare_with(what, kByConfig + of_threads, "an iterator by hand",
                 [&] { return by_hand.run_portion(); });
  }
  Process python_loop(
      {python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/dlas_loop.py", std::to_string(threads)},
      ".");
  compare_with(what, kByConfig + of_threads, "DL-Art-School's loop",
               [&] { return python_loop.ask_seconds(std::to_string(kSteps)); });
  at::set_num_threads(before);
}

}  // namespace

void bench_extensible() {
  print_header("Training steps: toy_srgan as a config; against code");
  for (const int threads : {1, 2}) compare_steps(threads);
  const auto ours = static_cast<double>(memory_of(kByConfig));
  const auto by_hand = static_cast<double>(memory_of(kByHand));
  print_row({"most memory of tensors in a step", "an iterator by hand", by_hand / ours,
             fmt::format("{:.1f} kB", ours / 1e3), fmt::format("{:.1f} kB", by_hand / 1e3)});
}

}  // namespace stepop::bench
