// What values_test.cpp cannot compare of the injectors over sound: random ones, and mistakes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/iterators/extensible/workbench.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace extensible_audio_test {

using namespace extensible;

/// 0, 1, 2, ... in each example, so that a part says where it comes from.
at::Tensor counted(int64_t samples) {
  return at::arange(samples, at::kFloat).expand({2, 3, samples});
}

TEST_CASE("random_audio_crop takes the same part of all examples, within the shortest") {
  Workbench bench;
  bench.set("x", counted(50));
  bench.set("lengths", at::tensor({40, 33}, at::kLong));
  std::set<int64_t> sizes;
  std::set<int64_t> starts;
  for (int i = 0; i < 300; ++i) {
    bench.inject(
        "{type: random_audio_crop, in: x, out: out, min_crop_size: 4, max_crop_size: 6, "
        "lengths_key: lengths, min_buffer: 3, crop_start_key: start}");
    const at::Tensor part = bench.at("out");
    const auto start = static_cast<int64_t>(std::get<double>(bench.item("start")));
    CHECK(at::equal(part, counted(50).narrow(2, start, part.size(2))));
    CHECK(start >= 3);
    CHECK(start + part.size(2) <= 30);
    sizes.insert(part.size(2));
    starts.insert(start);
  }
  CHECK((sizes == std::set<int64_t>{4, 5, 6}));
  CHECK(*starts.begin() == 3);
  CHECK(*starts.rbegin() == 26);
  // What is too short begins behind the buffer, and is as long as it is.
  bench.inject("{type: random_audio_crop, in: x, out: out, crop_size: 60, min_buffer: 5}");
  CHECK(at::equal(bench.at("out"), counted(50).narrow(2, 5, 45)));
  CHECK(message_of([&] { bench.inject("{type: random_audio_crop, in: x, out: out}"); }) ==
        "test.yaml:1: crop_size: missing: a number of samples; or min_crop_size and max_crop_size");
}

TEST_CASE("random_scale takes a part of any length from any place") {
  Workbench bench;
  bench.set("x", counted(10));
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int i = 0; i < 500; ++i) {
    bench.inject("{type: random_scale, in: x, out: out, min_samples: 8}");
    const at::Tensor part = bench.at("out");
    const auto start = part[0][0][0].item<int64_t>();
    CHECK(at::equal(part, counted(10).narrow(2, start, part.size(2))));
    seen.emplace(part.size(2), start);
  }
  CHECK(seen.size() == 3 + 2 + 1);
  bench.inject("{type: random_scale, in: x, out: out, min_samples: 20}");
  CHECK(bench.at("out").size(2) == 10);
}

TEST_CASE("mel_mask makes bands zero and leaves its input as it is") {
  Workbench bench;
  const at::Tensor x = at::ones({2, 20, 30});
  bench.set("x", x);
  std::set<int64_t> bands;
  for (int i = 0; i < 200; ++i) {
    bench.inject(
        "{type: mel_mask, in: x, out: out, frequency_mask_size_high: 4, frequency_mask_count: 1, "
        "time_mask_count: 0}");
    const at::Tensor made = bench.at("out");
    CHECK(at::equal(made[0], made[1]));
    const at::Tensor is_zero = made[0].sum(1) == 0;
    const auto rows = is_zero.sum().item<int64_t>();
    bands.insert(rows);
    CHECK(made.sum().item<double>() == doctest::Approx(static_cast<double>(2 * (20 - rows) * 30)));
    if (rows > 0) {  // one after another
      const auto first = is_zero.to(at::kLong).argmax().item<int64_t>();
      CHECK(is_zero.narrow(0, first, rows).all().item<bool>());
    }
  }
  CHECK((bands == std::set<int64_t>{0, 1, 2, 3}));
  CHECK(x.min().item<double>() == 1);
  bench.inject("{type: mel_mask, in: x, out: out, frequency_mask_count: 0, time_mask_count: 40}");
  CHECK(bench.at("out").min().item<double>() == 0);
  CHECK(at::equal(bench.at("out").select(2, 0)[0].min(), bench.at("out").select(2, 0)[0].max()));
  // Bands that can be larger than the spectrogram.
  bench.inject("{type: mel_mask, in: x, out: out, time_mask_size_high: 1000, time_mask_count: 9}");
}

TEST_CASE("two texts of full length keep their last tokens beside the separator") {
  Workbench bench;
  bench.set("x", at::ones({2, 3, 4}));
  bench.set("t", at::arange(6, at::kLong).reshape({2, 3}));
  bench.set("m", at::tensor({4, 2}, at::kLong));
  bench.set("n", at::tensor({3, 3}, at::kLong));
  const std::string config =
      "{type: combine_mel, audio_key: x, text_key: t, audio_lengths_key: m, text_lengths_key: n, "
      "output_audio_key: out, output_text_key: texts, text_separator: 9}";
  bench.inject(config);
  CHECK(at::equal(bench.at("texts"), at::tensor({0, 1, 2, 9, 3, 4, 5}, at::kLong).unsqueeze(0)));
  CHECK(bench.at("out").sizes() == at::IntArrayRef{1, 3, 8});
  bench.set("n", at::tensor({3, 7}, at::kLong));
  CHECK(message_of([&] { bench.inject(config); }) ==
        "text_lengths_key: the length 7 is not one of int64 [2, 3]");
}

TEST_CASE("mistakes in the options of spectrograms and sounds name the option and the limits") {
  Workbench bench;
  bench.set("x", at::rand({2, 600}) * 30000);
  const auto mistake = [&](const std::string& options) {
    return message_of([&] { bench.inject("{in: x, out: out, " + options + "}"); });
  };
  CHECK(mistake("type: mel_spectrogram, win_length: 2000") ==
        "test.yaml:1: win_length: expected filter_length, 1024, at most, found 2000");
  CHECK(
      mistake("type: mel_spectrogram, sampling_rate: 8000") ==
      "test.yaml:1: mel_fmax: expected more than mel_fmin, 0, and half of sampling_rate, 4000, at "
      "most, found 8000");
  CHECK(mistake("type: mel_spectrogram")
            .starts_with("expected audio in [-1, 1], found values up to "));
  CHECK(mistake("type: audio_resample, input_sample_rate: 44101, output_sample_rate: 48000")
            .starts_with("test.yaml:1: output_sample_rate: 44101 and 48000 have so small"));
  CHECK(mistake("type: audio_unshuffle, compression: 7") ==
        "expected audio [B, C, T] of a multiple of 7 samples, found float32 [2, 600]; `type: pad, "
        "multiple: 7` makes it one");
  CHECK(mistake("type: mel_mask") == "expected spectrograms [B, mels, T], found float32 [2, 600]");
}

/// What a message says to type, in the folder of the file.
std::string command_of(const std::string& message) {
  return message.substr(message.find("\n  python -c \"") + 14,
                        message.rfind('"') - message.find("\n  python -c \"") - 14);
}

TEST_CASE("a pickle of Python is refused with a line that makes a safetensors file of it") {
  Workbench bench;
  const ScratchFolder folder;
  bench.set("x", at::ones({2, 3, 4}));
  const auto pickled = [&](const std::string& name, const std::string& value) {
    run_python("import torch, sys; torch.save(" + value + ", sys.argv[1])", {folder.path(name)});
    return folder.path(name);
  };
  struct File {
    std::string option, value, result;
  };
  for (const auto& [option, value, result] :
       {File{"type: frequency_bin_normalize, stats_file", "(torch.ones(3), torch.ones(3) * 2)",
             "stats"},
        File{"type: torch_mel_spectrogram, mel_norm_file", "torch.ones(80)", "mel_norms"},
        File{"type: kmeans_quantizer, centroids", "({}, torch.ones(5, 3))", "centroids"}}) {
    CAPTURE(option);
    const std::string path = pickled(result + ".pth", value);
    const std::string message =
        message_of([&] { bench.inject("{in: x, out: out, " + option + ": " + path + "}"); });
    CHECK(message.starts_with("test.yaml:1: "));
    CHECK(message.find("This makes a safetensors file of one of torch.save:") != std::string::npos);
    run_python("import os; os.chdir('" + folder.path() + "'); " + command_of(message));
    CHECK(load_safetensors(folder.path(result + ".safetensors")).tensors.size() > 0);
    const std::string made =
        "{in: x, out: out, " + option + ": " + folder.path(result + ".safetensors") + "}";
    CHECK(message_of([&] { bench.injector(test_config(made)); }) == "no error");
  }
  bench.inject("{type: frequency_bin_normalize, in: x, out: out, stats_file: " +
               folder.path("stats.safetensors") + "}");
  CHECK(bench.at("out").abs().max().item<double>() == 0);
  save_safetensors(folder.path("other"), {{"shift", at::ones({3})}, {"scale", at::ones({3, 1})}});
  CHECK(
      message_of([&] {
        bench.inject("{type: frequency_bin_normalize, in: x, out: out, stats_file: " +
                     folder.path("other") + "}");
      })
          .find("stats_file: expected \"scale\" with 1 dimension in it, found float32 [3, 1]; this "
                "makes the file:\n  python -c ") != std::string::npos);
}

TEST_CASE("a training with random crops, masks and path lengths resumes with the same bits") {
  const std::string text = R"(
iterator: ExtensibleTrainer
num_threads: 1
batch_size: 4
num_steps: 8
log_freq: 1000
ckpt_freq: 4
seed: 3
datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [1, 16], w: [2, 3], y: [1, 16]}}}
networks: {a: {class: MLP, inputs: 6, hidden: [6], classes: 12}}
train: {mega_batch_factor: 2}
steps:
  s:
    training: a
    optimizer_params: {lr: 0.05}
    injectors:
      styles: {type: test_styles, generator: a, in: w, out: w_styles, images: gen}
      crop: {type: random_audio_crop, in: x, out: cropped, crop_size: 12}
      scale: {type: random_scale, in: y, out: scaled, min_samples: 4}
      mask: {type: mel_mask, in: cropped, out: masked, frequency_mask_size_high: 1}
      weigh: {type: test_mix, in: gen, by: [masked, scaled], out: mixed}
    losses:
      length: {type: stylegan2_pathlen, w_styles: w_styles, gen: gen, weight: 1}
      mean: {type: direct, key: mixed, weight: 1}
)";
  TestRun whole(text);
  whole.train();
  CHECK(whole.session.checkpoint().tensors.contains("steps_s_losses_length_mean.value"));
  TestRun rest(text, whole, 4);
  rest.train();
  CHECK(differences(rest.session.checkpoint().tensors, whole.session.checkpoint().tensors) == "");
}

/// Styles [B, 2, 3] with a gradient, and images [B, 3, 2, 2] that a network makes of them.
class Styles : public Injector {
 public:
  Styles(const Config& params, Ports& ports)
      : network_(ports.network<Network>(params, "generator")),
        in_(ports.reads(params, "in")),
        out_(ports.writes(params, "out")),
        images_(ports.writes(params, "images")) {}
  void run(StepState& state, const Iteration&) override {
    const at::Tensor styles = state.tensor(in_).detach().clone().requires_grad_();
    state.set(images_, network_->forward(styles.flatten(1)).reshape({-1, 3, 2, 2}).tanh());
    state.set(out_, styles);
  }

 private:
  std::shared_ptr<Network> network_;
  Slot in_, out_, images_;
};
STEPOP_REGISTER_INJECTOR(test_styles, Styles, {"For tests.", {}});

/// Something times the means of others.
class Mix : public Injector {
 public:
  Mix(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")),
        by_(ports.reads_all(params, "by")),
        out_(ports.writes(params, "out")) {}
  void run(StepState& state, const Iteration&) override {
    at::Tensor made = state.tensor(in_);
    for (const Slot slot : by_) made = made * state.tensor(slot).mean();
    state.set(out_, made);
  }

 private:
  Slot in_;
  std::vector<Slot> by_;
  Slot out_;
};
STEPOP_REGISTER_INJECTOR(test_mix, Mix, {"For tests.", {}});

}  // namespace extensible_audio_test
}  // namespace stepop
