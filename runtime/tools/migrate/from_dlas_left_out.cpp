#include "runtime/tools/migrate/from_dlas_left_out.h"

#include <array>
#include <utility>

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kOfTiles =
    "left out: crop cuts a part of that size out of anywhere; there a part of any size is resized";

constexpr std::string_view kOfSounds =
    "left out: `list` of Sound names a file with the paths to read, a line each";

constexpr std::array kLeftOut = {
    Row{"name", "a run is named when it starts: -n NAME"},
    Row{"suffix", "no counterpart"},
    Row{"grad_scaler_enabled", "losses are scaled with precision: float16, which fp16 becomes"},
    Row{"training_data_encountered", "left out: logs count steps, not examples"},
    Row{"wandb_run_name", "left out: a run is sent by the name of its folder"},
    Row{"wandb_progress_use_raw_steps", "left out: steps are those of the training"},
    Row{"dist_backend",
        "left out: --processes N trains with several processes; distributed/backend says by what"},
    Row{"ddp_find_unused_parameters", "left out: --processes N sums gradients without it"},
    Row{"ddp_static_graph", "left out: --processes N sums gradients without it"},
    Row{"automatically_scale_grads_for_fanin",
        "gradients are not scaled by the width of layers; param_groups of optimizer_params give "
        "layers a learning rate of their own"},
    Row{"automatically_scale_base_layer_size", "gradients are not scaled by the width of layers"},
    Row{"automatically_recover_nan_by_reverting_n_saves", "nothing reads it there"},
    Row{"anomaly_detection", "an error of a backward pass names the loss that it began with"},
    Row{"experiments", "is Python: write a hook, hooks: {name: {class: MyHook}}"},
    Row{"image_normalization_range", "pictures are in [-1, 1]"},
    Row{"colab_mode", "no copies to a server"},
    Row{"amp_opt_level", "nothing that works reads it there"},
    Row{"dataset", "is of process_video.py: `stepop predict` makes something of new files"},
    Row{"train/batch_size_optimizer",
        "a batch has a fixed size: accumulate: N adds up the gradients of N batches"},
    Row{"train/mod_batch_factor_also_disable_checkpointing",
        "checkpoint_modules counts in every iteration"},
    Row{"logger/reverse_n1_to_1", "pictures are in [-1, 1], and shown as such"},
    Row{"logger/reverse_imagenet_norm",
        "undo it by an injector, and name what it makes: {type: denormalize, ...}"},
    Row{"logger/recurrent_visual_indices",
        "pictures are [B, C, H, W]: {type: indices_extractor, dim: 1, in: x, out: [x0, x1]} takes "
        "some out of a sequence"},
    Row{"logger/is_mel_spectrogram", "an injector of your own logs a spectrogram by extra_metrics"},
    Row{"eval/pure", "an evaluation always goes through the steps"},
    Row{"eval/compute_psnr", "nothing reads it there; evaluators: {psnr: {type: psnr, ...}}"},
    Row{"eval/compute_fea", "nothing reads it there"},
    Row{"path/alt_path",
        "hooks: {copy: {class: RunCommand, on: checkpoint, ...}} copies checkpoints elsewhere"},
    Row{"path/optimizer_reset", "init_from begins with weights, and a new optimizer"},
    Row{"path/strict_load", "is for pretrain_model_<network>, and there is none"},
    Row{"path/resume_state",
        "its file is of torch.save and has the state of Python's optimizers: begin with the "
        "weights, init_from"},
    Row{"parts/wandb_debug", "left out: telemetry: {weights: 500} logs histograms of parameters"},
    Row{"parts/blocks_per_checkpoint", "left out: checkpoint_modules says what is computed again"},
    Row{"parts/method",
        "left out: a network is called by its forward, which can have a number as an input, that "
        "`args` gives, and do one or the other by it"},
    Row{"parts/min_loss",
        "left out: it fails there in the first call; every and after of the step say it"},
    Row{"datasets/fetch_alt_image", "no second image: an example has hq and lq"},
    Row{"datasets/fetch_alt_tiled_image", "no second image: an example has hq and lq"},
    Row{"datasets/labeler", "no labels of patches"},
    Row{"datasets/fixed_parameters", "left out: no constants in an example"},
    Row{"datasets/random_seed", "left out: the validation split draws the same numbers each time"},
    Row{"datasets/min_tile_size", kOfTiles},
    Row{"datasets/fixed_size", kOfTiles},
    Row{"datasets/tile_scale_normal_stddev", kOfTiles},
    Row{"datasets/blur_magnitude", "left out, with use_blurring"},
    Row{"datasets/dataroot_GT_weights",
        "every file counts once: the dataset Concat takes one twice"},
    Row{"datasets/need_ref", "no picture of the whole beside its part"},
    Row{"datasets/ignore_first", "all files of a folder are read"},
    Row{"datasets/strict", "images are read from folders, at any depth"},
    Row{"datasets/needs_metadata", "images are read from folders, at any depth"},
    Row{"datasets/use_blurring",
        "left out: augmentations: {input: {...}} of the dataset has motion blur"},
    Row{"datasets/use_compression_artifacts", "nothing reads it there"},
    Row{"datasets/cache_path", "left out: the folders are listed at each start"},
    Row{"datasets/exclusions", kOfSounds},
    Row{"datasets/endswith", kOfSounds},
    Row{"datasets/not_endswith", kOfSounds},
    Row{"datasets/min_length", kOfSounds},
    Row{"datasets/dont_clip", "left out: a longer file is cut"},
    Row{"datasets/resample_clip",
        "left out: Zip of the dataset twice gives two parts of each file, and Map names them"},
    Row{"datasets/extra_samples", "no further clips from the files of a folder"},
    Row{"datasets/extra_sample_length", "no further clips from the files of a folder"},
    Row{"datasets/grayscale", "nothing reads it there"},
    Row{"datasets/lq_noise",
        "noise is an injector: {type: add_noise, in: lq, out: noisy, scale: 0.1}"},
    Row{"datasets/normalize",
        "pictures are in [-1, 1]; an injector does more: {type: normalize, ...}"},
};

}  // namespace

std::string why_dlas_key_is_left_out(std::string_view path) {
  if (path.starts_with("ssh_") || path == "remote_path") path = "colab_mode";
  const std::string_view why = find_in(kLeftOut, path);
  return why.empty() ? "no counterpart" : std::string(why);
}

}  // namespace stepop
