"""Makes what tests/iterators/extensible/values_test.cpp compares with: what DL-Art-School's own injectors and
losses, run from its code, make of some inputs.

    make.py CODES    CODES is the folder codes/ of neonbjb/DL-Art-School at f31a333

It needs torch, torchaudio, librosa, scipy and safetensors, and writes values.safetensors beside itself. A case is
one injector or loss with a config that both programs read, which is in the metadata under `cases`. What comes out is
CASE/out/KEY, CASE/loss, CASE/gradient/KEY and CASE/gradient_of/NETWORK/PARAMETER, files are CASE/file/NAME. Random
numbers are drawn after torch.manual_seed(SEED).
"""

import json
import math
import pathlib
import random
import sys
import tempfile

import dl_art_school
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
SEED = 5

dl_art_school.prepare(sys.argv[1])
import librosa.filters  # noqa: E402
import librosa.util  # noqa: E402

# The names of their arguments have to be given since librosa 0.10.
mel, center = librosa.filters.mel, librosa.util.pad_center
librosa.filters.mel = lambda sr, n_fft, n_mels, fmin, fmax: mel(
    sr=sr, n_fft=n_fft, n_mels=n_mels, fmin=fmin, fmax=fmax)
librosa.util.pad_center = lambda data, size: center(data, size=size)
import models.audio.tts.tacotron2 as tacotron2  # noqa: E402
from models.audio.tts.tacotron2 import layers, loss as tacotron_loss  # noqa: E402
from models.audio.tts.tacotron2.text.symbols import symbols  # noqa: E402

tacotron2.TacotronSTFT = layers.TacotronSTFT
tacotron2.Tacotron2Loss = tacotron_loss.Tacotron2Loss
tacotron2.symbols = symbols
from trainer import losses as dlas_losses  # noqa: E402
from trainer.inject import format_injector_name  # noqa: E402
from trainer.injectors import audio_injectors, base_injectors, spec_augment  # noqa: E402

INJECTORS = {format_injector_name(name): made for module in (base_injectors, audio_injectors, spec_augment)
             for name, made in vars(module).items() if isinstance(made, type)}
base_injectors.create_injector = lambda opt, env: INJECTORS[opt["type"]](opt, env)


class ToyGenerator(nn.Module):
    def __init__(self, nf=4, scale=2):
        super().__init__()
        self.scale = scale
        self.conv1 = nn.Conv2d(3, nf, 3, padding=1)
        self.norm = nn.BatchNorm2d(nf)
        self.conv2 = nn.Conv2d(nf, 3 * scale**2, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.conv2(F.relu(self.norm(self.conv1(x)))), self.scale)


class ToyDiscriminator(nn.Module):
    def __init__(self, nf=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, nf, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(nf, nf, 3, stride=2, padding=1)
        self.linear = nn.Linear(nf, 1)

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x), 0.2)
        return self.linear(F.leaky_relu(self.conv2(x), 0.2).mean((2, 3)))


class Indexable(ToyGenerator):
    """Losses that always take an output by its number get a list."""

    def forward(self, x):
        return [super().forward(x)]


torch.manual_seed(1)
networks = {"a": ToyGenerator(), "d": ToyDiscriminator()}
with torch.no_grad():  # so that no factor is 1 and no term is 0
    for name in ("weight", "bias", "running_mean", "running_var"):
        getattr(networks["a"].norm, name).add_(torch.rand(4) * 0.3)
weights = {name: {key: value.clone() for key, value in net.state_dict().items()} for name, net in networks.items()}
tensors = {f"network/{name}/{key}": value for name, state in weights.items() for key, value in state.items()}
cases = []


def env(iteration, training=True, generator=None):
    for name, net in networks.items():
        net.load_state_dict(weights[name])
        net.zero_grad()
        net.train()
    generator = generator or networks["a"]
    return {"device": "cpu", "rank": -1, "dist": False, "step": iteration, "training": training,
            "opt": dl_art_school.Options(fp16=False, dist=False), "mega_batch_factor": 1,
            "generators": {"a": generator}, "discriminators": {"d": networks["d"]}}


def as_tensors(value):
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)


def name_of(tensor):
    """Of an input; the same one has one name in all cases."""
    for name, other in tensors.items():
        if name.startswith("input/") and other.shape == tensor.shape and other.dtype == tensor.dtype and \
                other.equal(tensor):
            return name
    name = f"input/{len(tensors)}"
    tensors[name] = tensor.clone()
    return name


def store(name, kind, config, inputs, iteration, **more):
    case = f"{len(cases):02}_{name}"
    names = {key: name_of(as_tensors(value).detach()) for key, value in inputs.items()}
    cases.append({"name": case, "kind": kind, "config": config, "inputs": names, "iteration": iteration} | more)
    return case


def with_files(config, files):
    """`files`: key -> (what DL-Art-School reads by torch.load, our tensors)."""
    theirs = dict(config)
    folder = tempfile.mkdtemp()
    for key, (value, _) in files.items():
        theirs[key] = f"{folder}/{key}.pth"
        torch.save(value, theirs[key])
    return theirs


def injector(config, inputs, iteration=0, training=True, files=None):
    files = files or {}
    case = store(config["type"], "injector", config, inputs, iteration, training=training, files=list(files))
    made = INJECTORS[config["type"]](dl_art_school.options(with_files(config, files)), env(iteration, training))
    torch.manual_seed(SEED)
    for key, value in made(dict(inputs)).items():
        for name, tensor in enumerate(value) if isinstance(value, tuple) else [("", value)]:
            tensors[f"{case}/out/{key}{name}"] = as_tensors(tensor).detach()
    for _, ours in files.values():
        tensors.update({f"{case}/file/{name}": value for name, value in ours.items()})


def run_loss(config, inputs, iteration, net, generator, fixed):
    inputs = {key: value.detach().clone() for key, value in inputs.items()}
    of = {key: value.requires_grad_() for key, value in inputs.items()
          if value.is_floating_point() and key not in fixed}
    made = (tacotron2.Tacotron2Loss if config["type"] == "nv_tacotron2_loss" else dlas_losses.create_loss)(
        dl_art_school.options(config), env(iteration, generator=generator))
    torch.manual_seed(SEED)
    result = made(networks[net], dict(inputs))
    value, state = result if isinstance(result, tuple) else (result, {})
    value.backward()
    return value.detach(), {key: x.grad for key, x in of.items() if x.grad is not None}, state


def loss(config, inputs, iteration=0, net="d", choices=1, generator=None, fixed=()):
    """`choices`: how many values it draws one from; `fixed`: inputs that are data."""
    case = store(config["type"], "loss", config, inputs, iteration, choices=choices)
    values, choose = [], random.choice
    for chosen in range(choices):
        random.choice = lambda options: options[chosen]
        value, gradients, state = run_loss(config, inputs, iteration, net, generator, fixed)
        values.append(value)
    random.choice = choose
    tensors[f"{case}/loss"] = torch.stack(values)
    if choices > 1:
        return
    tensors.update({f"{case}/gradient/{key}": value for key, value in gradients.items()})
    tensors.update({f"{case}/out/{key}": value.detach() for key, value in state.items()})
    for name, network in (networks | ({"a": generator} if generator else {})).items():
        for key, parameter in network.named_parameters():
            if parameter.grad is not None:
                tensors[f"{case}/gradient_of/{name}/{key}"] = parameter.grad.clone()


def formula(config, inputs, value, iteration=0):
    """A loss that DL-Art-School cannot compute, by its formula."""
    case = store(config["type"], "loss", config, inputs, iteration, choices=1)
    tensors[f"{case}/loss"] = value.detach().reshape(1)


g = torch.Generator().manual_seed(2)
rand = lambda *shape: torch.rand(shape, generator=g)  # noqa: E731
randn = lambda *shape: torch.randn(shape, generator=g)  # noqa: E731
x, y, flat = randn(2, 3, 4, 4), randn(2, 3, 4, 4), randn(2, 3, 8)
small, video = rand(1, 3, 5, 6), randn(2, 3, 2, 3, 4)

# --- injectors
io = {"in": "x", "out": "out"}
injector({"type": "direct"} | io, {"x": x})
injector({"type": "generator", "generator": "a"} | io, {"x": x})
injector({"type": "generator", "generator": "a", "grad": False} | io, {"x": x})
injector({"type": "discriminator", "discriminator": "d"} | io, {"x": x})
for scheduler in ({"type": "fixed", "weight": 0.25},
                  {"type": "linear_decay", "initial_weight": 3.0, "steps": 10, "lower_bound": 0.5, "start_step": 4},
                  {"type": "sinusoidal", "upper_weight": 2.0, "lower_weight": 0.5, "period": 7, "start_step": 3}):
    for iteration in (0, 9, 40):
        injector({"type": "scheduled_scalar", "out": "out", "scheduler": scheduler}, {}, iteration)
injector({"type": "add_noise", "scale": 0.5} | io, {"x": x})
injector({"type": "add_noise", "scale": "s"} | io, {"x": x, "s": torch.tensor(0.25)})
injector({"type": "add_noise", "scale": 0.5, "mode": "uniform"} | io, {"x": x})
injector({"type": "grey"} | io, {"x": x})
for mode in ("nearest", "bilinear", "bicubic", "area"):
    injector({"type": "interpolate", "scale_factor": 2, "mode": mode} | io, {"x": small})
    injector({"type": "interpolate", "scale_factor": 0.4, "mode": mode} | io, {"x": small})
    injector({"type": "interpolate", "size": 4, "mode": mode} | io, {"x": small})
injector({"type": "image_patch", "patch_size": 3} | io, {"x": torch.cat([x, y], 1)})
injector({"type": "image_patch", "patch_size": 3, "resize": 5} | io, {"x": x})
injector({"type": "image_patch", "patch_size": 3} | io, {"x": x}, training=False)
injector({"type": "concatenate", "in": ["x", "y"], "out": "out", "dim": 1}, {"x": x, "y": y})
injector({"type": "concatenate", "in": ["x", "y"], "out": "out", "dim": -1}, {"x": x, "y": y})
injector({"type": "margin_removal", "margin": 1} | io, {"x": x})
injector({"type": "for_each", "subtype": "normalize", "shift": 0.5, "scale": 3} | io, {"x": video})
injector({"type": "for_each", "subtype": "discriminator", "discriminator": "d"} | io, {"x": randn(2, 2, 3, 4, 4)})
injector({"type": "pad", "multiple": 5} | io, {"x": flat})
injector({"type": "squeeze", "dim": 1} | io, {"x": x[:, :1]})
injector({"type": "constant", "constant_type": "zeroes", "like": "x", "out": "out"}, {"x": x})
injector({"type": "indices_extractor", "dim": 1, "in": "x", "out": ["p", "q", "r"]}, {"x": x})
injector({"type": "batch_rotate"} | io, {"x": x})
injector({"type": "sr_diffs", "mode": "produce_diff", "lq": "x", "hq": "y", "diff": "diff", "out": "out",
          "include_combined": True}, {"x": x, "y": y})
injector({"type": "sr_diffs", "mode": "produce_diff", "lq": "x", "hq": "y", "diff": "diff", "out": "out",
          "include_combined": False}, {"x": x, "y": y})
injector({"type": "sr_diffs", "mode": "recombine", "lq": "x", "hq": "y", "out": "out"}, {"x": x, "y": y})
injector({"type": "mix_and_label", "in": ["x", "y"], "out": "out", "out_labels": "labels"},
         {"x": randn(6, 1, 2, 2), "y": randn(6, 1, 2, 2)})
injector({"type": "noise", "shape": [2, 3]} | io, {"x": x})
for dim in (1, 2, 4):
    injector({"type": "decompose_dimension", "dim": dim} | io, {"x": video})
    last = cases[-1]["name"]
    injector({"type": "recompose_dimension", "reverse_shape": "s", "reverse_permute": "p"} | io,
             {"x": tensors[f"{last}/out/out"], "s": tensors[f"{last}/out/out_reverse_shape"].tolist(),
              "p": tensors[f"{last}/out/out_reverse_permute"].tolist()})
injector({"type": "decompose_dimension", "dim": 1, "cutoff_dim": 4} | io, {"x": video})
injector({"type": "normalize", "shift": 0.5, "scale": 3} | io, {"x": x})
injector({"type": "denormalize", "shift": 0.5, "scale": 3} | io, {"x": x})
injector({"type": "channel_clip", "channel_low": 1, "channel_high": 3} | io, {"x": x})

# --- sound
time = torch.arange(600) / 8000
sound = torch.stack([0.8 * torch.sin(2 * math.pi * 440 * time),
                     1.3 * torch.sin(2 * math.pi * 900 * time) * rand(600)])  # some of it beyond 1
few = {"filter_length": 64, "hop_length": 20, "win_length": 48, "n_mel_channels": 10, "mel_fmin": 30,
       "mel_fmax": 3500, "sampling_rate": 8000}
injector({"type": "mel_spectrogram"} | few | io, {"x": sound})
injector({"type": "mel_spectrogram", "do_normalization": True} | few | {"win_length": 64} | io,
         {"x": sound.unsqueeze(1)})
injector({"type": "mel_spectrogram"} | io, {"x": sound[:1]})
injector({"type": "torch_mel_spectrogram"} | few | io, {"x": sound})
injector({"type": "torch_mel_spectrogram", "normalize": True, "true_normalization": True} | few | io,
         {"x": sound.unsqueeze(1)})
injector({"type": "torch_mel_spectrogram"} | io, {"x": sound[:1]})
norms = rand(10) + 0.5
injector({"type": "torch_mel_spectrogram"} | few | io, {"x": sound},
         files={"mel_norm_file": (norms, {"mel_norms": norms})})
injector({"type": "normalize_mel"} | io, {"x": flat})
shift, scale = randn(3), rand(3) + 0.5
injector({"type": "frequency_bin_normalize"} | io, {"x": flat},
         files={"stats_file": ((shift, scale), {"shift": shift, "scale": scale})})
for rates in ((3, 2), (2, 3), (22050, 24000), (24000, 8000), (16000, 16000)):
    injector({"type": "audio_resample", "input_sample_rate": rates[0], "output_sample_rate": rates[1]} | io,
             {"x": sound[:, :151].unsqueeze(1)})
injector({"type": "audio_clip", "clip_size": 5, "ctc_codes_key": "c", "ctc_out_key": "codes"} | io,
         {"x": flat, "c": torch.arange(14).reshape(2, 7)})
injector({"type": "audio_clip", "clip_size": 8, "ctc_codes_key": "c", "ctc_out_key": "codes"} | io,
         {"x": flat, "c": torch.arange(14).reshape(2, 7)})
injector({"type": "audio_unshuffle", "compression": 4} | io, {"x": flat})
centroids = randn(7, 3)
broken = flat.clone()
broken[0, 1, 2] = math.nan
injector({"type": "kmeans_quantizer"} | io, {"x": broken},
         files={"centroids": (({}, centroids), {"centroids": centroids})})
keys = {"audio_key": "x", "text_key": "t", "audio_lengths_key": "m", "text_lengths_key": "n",
        "output_audio_key": "out", "output_text_key": "texts"}
injector({"type": "combine_mel"} | keys, {"x": randn(5, 3, 8), "t": torch.arange(20).reshape(5, 4),
                                          "m": torch.tensor([8, 8, 3, 5, 2]), "n": torch.tensor([4, 3, 1, 2, 4])})
injector({"type": "combine_mel"} | keys, {"x": randn(1, 3, 8), "t": torch.arange(4).reshape(1, 4),
                                          "m": torch.tensor([8]), "n": torch.tensor([4])})

# --- losses
pair = {"real": "x", "fake": "y"}
both = {"x": x, "y": y}
loss({"type": "pix", "criterion": "l1"} | pair, both)
loss({"type": "pix", "criterion": "l2", "real_scale": 0.5, "real_offset": 2} | pair, both)
loss({"type": "sr_pix", "scale": 2} | pair, both)
loss({"type": "sr_pix", "scale": 4, "base_loss": 0.1, "exp": 1.5} | pair, both)
loss({"type": "direct", "key": "x"}, {"x": x})
loss({"type": "direct", "key": "x", "inverted": True, "annealing_termination_step": 10}, {"x": x}, 4)
loss({"type": "direct", "key": "x", "annealing_termination_step": 10}, {"x": x}, 40)
for kind in ("crossentropy", "cross_entropy"):
    loss({"type": kind, "logits": "x", "labels": "l"}, {"x": randn(2, 4, 5), "l": torch.randint(5, (2, 4), generator=g)})
loss({"type": "cross_entropy", "logits": "x", "labels": "l", "swap_channels": True, "rescale": True, "mask": "m"},
     {"x": x, "l": torch.randint(3, (2, 1, 2, 2), generator=g), "m": rand(2, 1, 2, 2)})
loss({"type": "cross_entropy", "subtype": "soft_ce", "logits": "x", "labels": "l"}, {"x": randn(3, 5), "l": randn(3, 5)})
loss({"type": "cross_entropy", "subtype": "bce", "logits": "x", "labels": "l"}, {"x": randn(3, 5), "l": rand(3, 5)})
loss({"type": "distillation", "teacher": "x", "student": "y", "temperature": 2}, {"x": flat, "y": randn(2, 3, 8)})
images = {"x": randn(2, 3, 8, 8), "y": randn(2, 3, 8, 8)}
for kind, more in (("gan", {}), ("ragan", {}), ("ragan", {"detach_real": False, "noise": 0.1}), ("pixgan", {})):
    loss({"type": "generator_gan", "gan_type": kind, "discriminator": "d"} | pair | more, images)
for kind, more in (("gan", {}), ("ragan", {"noise": 0.1}), ("max_spread", {}), ("pixgan", {}),
                   ("gan", {"gradient_penalty": True})):
    loss({"type": "discriminator_gan", "gan_type": kind} | pair | more, images)
tile = {"x": randn(2, 3, 4, 4)}
tile["made"] = networks["a"](tile["x"]).detach()
of_generator = {"generator": "a", "criterion": "l1", "real": "made", "fake": ["x"]}
loss({"type": "geometric"} | of_generator, tile, choices=5)
corners = tile | {f"x_{corner}": randn(2, 3, 4, 4) for corner in ("top_right", "bottom_left", "bottom_right")}
loss({"type": "translational", "patch_size": 8, "overlap": 5, "detach_fake": False, "generator_output_index": 0}
     | of_generator, corners, choices=3)
indexable = Indexable()
indexable.load_state_dict(weights["a"])
loss({"type": "recursive", "recursive_depth": 2, "downsample_factor": 0.5, "generator_output_index": 0}
     | of_generator, tile, generator=indexable)
loss({"type": "recurrent", "subtype": "pix", "criterion": "l1", "recurrent_weights": [1, 0.5, 3]} | pair, both)
loss({"type": "recurrent", "subtype": "pix", "criterion": "l2"} | pair, both)
loss({"type": "for_element", "subtype": "pix", "criterion": "l1", "index": 2} | pair, both)
divergence = {"type": "stylegan2_divergence", "discriminator": "d"} | pair
for logistic in (False, True):
    loss(divergence | {"gen_loss": True, "logistic": logistic, "noise": 0.1}, images)
    loss(divergence | {"gen_loss": False, "logistic": logistic, "gradient_penalty_frequency": 4, "noise": 0.1},
         images, 5, fixed="xy")
loss(divergence | {"gen_loss": False, "gradient_penalty_frequency": 4}, images, 8, fixed="xy")
loss({"type": "nv_tacotron2_loss", "mel_target_key": "t", "mel_output_key": "m", "mel_output_postnet_key": "p",
      "gate_target_key": "gt", "gate_output_key": "g"},
     {"t": flat, "m": randn(2, 3, 8), "p": randn(2, 3, 8), "gt": rand(2, 8).round(), "g": randn(2, 8)})

# --- what DL-Art-School cannot compute: its cosine criterion has no target, `feature` no network
cosine = 1 - F.cosine_similarity(x.flatten(1), y.flatten(1)).mean()
formula({"type": "pix", "criterion": "cosine"} | pair, both, cosine)


def features(images, layer, thin=load_file(HERE.parent / "vgg19" / "thin.safetensors")):
    """VGG19 up to a layer, as tests/iterators/losses/torch_vgg19.py has it."""
    made = (((images + 1) / 2).clamp(0, 1) - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor(
        [0.229, 0.224, 0.225]).view(3, 1, 1)
    for i in [0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30][:{2: 4, 5: 14}[layer]]:
        if i in (5, 10, 19, 28):
            made = F.max_pool2d(made, 2)
        made = F.relu(F.conv2d(made, thin[f"features.{i}.weight"], thin[f"features.{i}.bias"], padding=1))
    return made


pictures = {"x": rand(1, 3, 16, 16) * 2 - 1, "y": rand(1, 3, 16, 16) * 2 - 1}
for layer, criterion in ((2, F.l1_loss), (5, F.mse_loss)):
    formula({"type": "feature", "criterion": "l1" if layer == 2 else "l2", "vgg19": "DATA/vgg19/thin.safetensors",
             "layer": layer} | pair, pictures,
            criterion(features(pictures["y"], layer), features(pictures["x"], layer)))

# Path lengths, by lucidrains' order: nothing before there is a mean, which moves afterwards.
styles, matrix = randn(2, 3, 4), randn(12, 48) * 0.3
case = store("stylegan2_pathlen", "path lengths", {"type": "stylegan2_pathlen", "w_styles": "w", "gen": "gen"},
             {"w": styles, "matrix": matrix}, 0)
torch.manual_seed(SEED)
mean, values = None, []
for _ in range(3):
    w = styles.clone().requires_grad_()
    made = torch.tanh(w.flatten(1) @ matrix).reshape(2, 3, 4, 4)
    from models.image_generation.stylegan.stylegan2_lucidrains import calc_pl_lengths

    lengths = calc_pl_lengths(w, made)
    values.append(torch.zeros(()) if mean is None else ((lengths - mean) ** 2).mean().detach())
    average = lengths.mean().detach()
    mean = average if mean is None else 0.99 * mean + 0.01 * average
tensors[f"{case}/loss"] = torch.stack(values)
tensors[f"{case}/out/mean"] = mean

save_file({key: value.contiguous().clone() for key, value in tensors.items()}, HERE / "values.safetensors",
          metadata={"cases": json.dumps(cases), "seed": str(SEED)})
