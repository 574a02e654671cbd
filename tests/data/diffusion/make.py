"""Makes what tests/iterators/diffusion and tests/models/unet_diffusion compare with, by the code of
DL-Art-School (github.com/neonbjb/DL-Art-School at f31a333), which is OpenAI's guided-diffusion:
    python tests/data/diffusion/make.py DL-Art-School/codes
writes diffusion.safetensors and unet-*.safetensors beside this file. What the code there cannot run
is mended below, by the formulas of guided-diffusion.
"""

import json
import pathlib
import sys
import types

import numpy as np
import torch as th
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent
CODES = pathlib.Path(sys.argv[1])


def package(name, **members):
    module = types.ModuleType(name)
    module.__path__ = [str(CODES / name.replace(".", "/"))]
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[name] = module


def load(name, replaced=()):
    text = (CODES / (name.replace(".", "/") + ".py")).read_text()
    for before, after in replaced:
        assert before in text, before
        text = text.replace(before, after)
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


package("models")
package("models.diffusion")
package("torchvision")
package("trainer")
package("trainer.networks", register_model=lambda function: function)
package("utils")
package("utils.util", checkpoint=lambda function, *args: function(*args))
np.int = int  # gone from numpy

diffusion = load("models.diffusion.gaussian_diffusion", [
    ('"pred_eps": eps,', '"pred_eps": None,'),  # undefined but for epsilon
    ('"pred_eps": out["pred_eps"], ', ''),
    ("x_start_pred = torch.zeros(x_start)",
     "x_start_pred = self._predict_xstart_from_xprev(x_t, t, model_output)"),
    ('terms["vb"] = terms["vb"] * t_mask',  # there is none where variances are fixed
     'terms.update({"vb": terms["vb"] * t_mask} if "vb" in terms else {})'),
    ("for i in tqdm(indices):", "for i in indices:"),
])
respace = load("models.diffusion.respace", [("from .gaussian_diffusion",
                                             "from models.diffusion.gaussian_diffusion")])
resample = load("models.diffusion.resample")
nn = load("models.diffusion.nn")
unet = load("models.diffusion.unet_diffusion")


def spaced(schedule, timesteps, spacing, **kwargs):
    options = {"model_mean_type": "epsilon", "model_var_type": "fixed_small", "loss_type": "mse",
               **kwargs}
    return respace.SpacedDiffusion(
        use_timesteps=respace.space_timesteps(timesteps, spacing),
        betas=diffusion.get_named_beta_schedule(schedule, timesteps), **options)


def floats(values):
    return th.from_numpy(np.asarray(values, dtype=np.float64).copy())


def schedules(tensors):
    for name, timesteps in (("linear", 1000), ("linear", 50), ("cosine", 1000), ("cosine", 7)):
        tensors[f"betas/{name}/{timesteps}"] = floats(
            diffusion.get_named_beta_schedule(name, timesteps))
    for timesteps, spacing in ((300, "10,15,20"), (1000, "50"), (1000, "ddim50"), (4000, "ddim25"),
                               (100, "7,3"), (31, "4,5,1"), (1000, "ddim1000"), (50, "50")):
        tensors[f"spacing/{timesteps}/{spacing}"] = th.tensor(
            sorted(respace.space_timesteps(timesteps, spacing)))
    for schedule, timesteps, spacing in (("linear", 100, "100"), ("cosine", 50, "ddim10"),
                                         ("linear", 4000, "50")):
        made = spaced(schedule, timesteps, spacing)
        where = f"tables/{schedule}/{timesteps}/{spacing}/"
        for ours, theirs in (("betas", "betas"), ("signal", "alphas_cumprod"),
                             ("signal_before", "alphas_cumprod_prev"),
                             ("sqrt_signal", "sqrt_alphas_cumprod"),
                             ("sqrt_noise", "sqrt_one_minus_alphas_cumprod"),
                             ("sqrt_recip", "sqrt_recip_alphas_cumprod"),
                             ("sqrt_recip_less", "sqrt_recipm1_alphas_cumprod"),
                             ("posterior_variance", "posterior_variance"),
                             ("posterior_log_variance", "posterior_log_variance_clipped"),
                             ("posterior_of_start", "posterior_mean_coef1"),
                             ("posterior_of_now", "posterior_mean_coef2")):
            tensors[where + ours] = floats(getattr(made, theirs))


MEANS = ("epsilon", "previous_x", "start_x")
VARIANCES = ("fixed_small", "fixed_large", "learned", "learned_range")
LOSSES = ("mse", "rescaled_mse", "kl", "rescaled_kl")


def losses(tensors):
    th.manual_seed(1)
    start = (th.randn(5, 3, 6) * 0.7).clamp(-1, 1)
    t = th.tensor([0, 1, 9, 30, 49])
    noise = th.randn_like(start)
    output = th.randn(5, 6, 6) * 0.8
    tensors.update({"losses/start": start, "losses/t": t, "losses/noise": noise,
                    "losses/output": output})
    tensors["losses/x"] = spaced("linear", 50, "50").q_sample(start, t, noise)
    for mean in MEANS:
        for variance in VARIANCES:
            channels = 6 if variance.startswith("learned") else 3
            for loss in LOSSES:
                made = spaced("linear", 50, "50", model_mean_type=mean, model_var_type=variance,
                              loss_type=loss)
                given = output[:, :channels].clone().requires_grad_(True)
                terms = made.training_losses(lambda x, ts: given, start, t, noise=noise)
                where = f"losses/{mean}/{variance}/{loss}/"
                tensors[where + "loss"] = terms["loss"].detach()
                tensors[where + "gradient"] = th.autograd.grad(terms["loss"].sum(), given)[0]
                for key in ("mse", "vb"):
                    if key in terms:
                        tensors[where + key] = nn.mean_flat(terms[key]).detach() \
                            if terms[key].dim() > 1 else terms[key].detach()
                if "x_start_predicted" in terms:
                    tensors[where + "start"] = terms["x_start_predicted"].detach()
            made = spaced("linear", 50, "50", model_mean_type=mean, model_var_type=variance)
            out = made.p_mean_variance(lambda x, ts: output[:, :channels], tensors["losses/x"], t)
            where = f"predicted/{mean}/{variance}/"
            tensors[where + "mean"] = out["mean"]
            tensors[where + "log_variance"] = out["log_variance"]
            tensors[where + "start"] = out["pred_xstart"]


def causal(tensors):
    start, t, noise, output = (tensors[f"losses/{key}"] for key in ("start", "t", "noise", "output"))
    for slope, jitter in ((1, 0.0), (3.5, 0.6), (8, -0.9)):
        diffusion.random = types.SimpleNamespace(random=lambda: (jitter + 1) / 2)
        where = f"causal/{slope}/{jitter}/"
        tensors[where + "t"] = diffusion.causal_timestep_adjustment(t, 6, 50, slope)
        for mean, variance in (("epsilon", "fixed_small"), ("start_x", "learned_range"),
                               ("previous_x", "learned")):
            made = spaced("linear", 50, "50", model_mean_type=mean, model_var_type=variance)
            given = output[:, :6 if variance.startswith("learned") else 3].clone()
            given.requires_grad_(True)
            seen = []
            terms = made.causal_training_losses(lambda x, ts: seen.append((x, ts)) or given, start,
                                                t, causal_slope=slope, noise=noise)
            of = f"{where}{mean}/{variance}/"
            tensors[of + "loss"] = terms["loss"].detach()
            tensors[of + "gradient"] = th.autograd.grad(terms["loss"].sum(), given)[0]
            tensors[where + "x"], tensors[where + "timesteps"] = seen[0]


def model_of(learned):
    def model(x, timesteps):
        made = 0.5 * th.tanh(0.7 * x) + 0.1 * th.cos(timesteps.float() / 10)[:, None, None]
        return th.cat([made, 0.9 * th.sin(3 * x)], dim=1) if learned else made
    return model


def samples(tensors):
    th.manual_seed(2)
    noise = th.randn(4, 3, 4)  # as many as a row is long: a mask there has the wrong shape
    tensors["samples/noise"] = noise
    for mean in MEANS:
        for variance in VARIANCES:
            learned = variance.startswith("learned")
            for kind, spacing, rescales in (("ddpm", "10", False), ("ddpm", "3,7", True),
                                            ("ddim", "ddim10", False), ("eta", "ddim5", False)):
                made = spaced("cosine", 50, spacing, model_mean_type=mean, model_var_type=variance,
                              rescale_timesteps=rescales)
                th.manual_seed(7)
                if kind == "ddpm":
                    out = made.p_sample_loop(model_of(learned), noise.shape, noise=noise,
                                             device="cpu")
                else:
                    out = made.ddim_sample_loop(model_of(learned), noise.shape, noise=noise,
                                                progress=False, device="cpu",
                                                eta=0.5 if kind == "eta" else 0.0)
                tensors[f"samples/{mean}/{variance}/{kind}/{spacing}/{int(rescales)}"] = out


def samplers(tensors):
    class Five:
        num_timesteps = 5

    sampler = resample.LossSecondMomentResampler(Five())
    random = np.random.RandomState(3)
    ts = np.concatenate([np.tile(np.arange(5), 10), random.randint(0, 5, 20)])
    values = random.rand(len(ts)) * (ts + 1)
    tensors["sampler/timesteps"] = th.from_numpy(ts)
    tensors["sampler/losses"] = floats(values)
    before = []
    for t, value in zip(ts, values):
        sampler.update_with_all_losses([t], [value])
        weights = sampler.weights()
        before.append(weights / weights.sum())
    tensors["sampler/probabilities"] = floats(np.stack(before))
    for steps, count in ((4000, 2048), (1000, 64), (50, 7)):
        class Steps:
            num_timesteps = steps

        made = resample.DeterministicSampler(Steps(), count, {"rank": -1})
        tensors[f"sampler/spread/{steps}/{count}"] = made.indices
    for size in (8, 9):
        tensors[f"embedding/{size}"] = nn.timestep_embedding(th.tensor([0, 3, 999]), size)


UNETS = {
    "classes": (unet.UNetModel, dict(
        image_size=8, in_channels=1, model_channels=8, out_channels=2, num_res_blocks=1,
        attention_resolutions=[2], channel_mult=[1, 2], num_classes=5, num_heads=2,
        num_heads_upsample=4, use_scale_shift_norm=True)),
    "larger": (unet.SuperResModel, dict(
        image_size=8, in_channels=3, num_corruptions=2, model_channels=8, out_channels=6,
        num_res_blocks=2, attention_resolutions=[1, 2], channel_mult=[1, 1], num_head_channels=4,
        resblock_updown=True, use_new_attention_order=True)),
    "sequence": (unet.UNetModel, dict(
        image_size=16, in_channels=4, model_channels=8, out_channels=4, num_res_blocks=1,
        attention_resolutions=[1], channel_mult=[1, 1, 1], dims=1, use_raw_y_as_embedding=True)),
    "averages": (unet.UNetModel, dict(
        image_size=8, in_channels=1, model_channels=8, out_channels=1, num_res_blocks=1,
        attention_resolutions=[], channel_mult=[1, 1], conv_resample=False)),
}


def unets():
    for name, (kind, args) in UNETS.items():
        th.manual_seed(4)
        model = kind(**args)
        with th.no_grad():
            for parameter in model.parameters():  # some begin as zeros
                parameter.add_(0.1 * th.randn_like(parameter))
        shape = (2, args["in_channels"], 16) if args.get("dims") == 1 else \
            (2, args["in_channels"], 8, 8)
        inputs = {"x": th.randn(shape), "timesteps": th.tensor([3, 250])}
        if "num_classes" in args:
            inputs["y"] = th.tensor([1, 4])
        if args.get("use_raw_y_as_embedding"):
            inputs["y"] = th.randn(2, 4 * args["model_channels"])
        if kind is unet.SuperResModel:
            inputs["low_res"] = th.randn(2, 3, 4, 4)
            inputs["corruption_factor"] = th.rand(2, 2)
        out = model(**inputs)
        direction = th.randn_like(out)
        (out * direction).sum().backward()
        tensors = {f"inputs.{key}": value for key, value in inputs.items()}
        tensors.update({"output": out.detach(), "direction": direction})
        for key, parameter in model.named_parameters():
            tensors[f"weights.{key}"] = parameter.detach()
            if name == "larger":
                tensors[f"gradients.{key}"] = parameter.grad
        save_file({key: value.contiguous() for key, value in tensors.items()},
                  FOLDER / f"unet-{name}.safetensors", {"args": json.dumps(args)})


tensors = {}
for make in (schedules, losses, causal, samples, samplers):
    make(tensors)
save_file({key: value.contiguous().clone() for key, value in tensors.items()},
          FOLDER / "diffusion.safetensors")
unets()
