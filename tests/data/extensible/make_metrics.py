"""Makes metrics.safetensors: pictures and features, and what others say of them.

    python3 -m venv venv && venv/bin/pip install scipy scikit-image safetensors
    venv/bin/python tests/data/extensible/make_metrics.py

PSNR and SSIM are BasicSR's functions (basicsr/metrics/psnr_ssim.py) on pictures of 8 bits, and
scikit-image's on those as they are. FID is pytorch-fid's formula with scipy's sqrtm, KID that of
torch-fidelity.
"""

import pathlib

import numpy as np
from safetensors.numpy import save_file
from scipy import linalg, signal
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

FOLDER = pathlib.Path(__file__).parent
BORDER = 4
random = np.random.default_rng(3)


def pictures(count, height, width):
    """Waves with noise and edges, [count, 3, height, width] in [0, 1]."""
    y, x = np.mgrid[:height, :width]
    made = []
    for i in range(count):
        waves = [np.sin(x / (2 + i + c) + y / (3 + c)) for c in range(3)]
        made.append(np.stack(waves) * 0.4 + 0.5 + 0.3 * (x + 2 * y > 50 + 9 * i))
    return (np.stack(made) + random.normal(0, 0.02, (count, 3, height, width))).clip(0, 1)


def to_bytes(picture):
    """[3, H, W] in [0, 1] to [H, W, 3] of 0 to 255, as a file would hold it."""
    return (picture.astype(np.float64).clip(0, 1) * 255).round().transpose(1, 2, 0)


def to_y(rgb):
    """MATLAB's rgb2ycbcr without its rounding; [H, W, 3] to [H, W, 1]."""
    return (np.dot(rgb / 255, [65.481, 128.553, 24.966]) + 16)[..., None]


def crop(image, border):
    return image[border:-border, border:-border] if border else image


def psnr(a, b):
    return 10 * np.log10(255.0**2 / np.mean((a - b) ** 2))


def ssim(a, b):
    """The mean over the channels of BasicSR's _ssim, whose windows lie in the image."""
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    line = np.exp(-np.arange(-5, 6) ** 2 / (2 * 1.5**2))
    window = np.outer(line, line) / line.sum() ** 2
    values = []
    for x, y in zip(a.transpose(2, 0, 1), b.transpose(2, 0, 1)):
        mean = lambda z: signal.correlate2d(z, window, mode="valid")
        mx, my = mean(x), mean(y)
        vx, vy, cov = mean(x * x) - mx**2, mean(y * y) - my**2, mean(x * y) - mx * my
        values.append(np.mean((2 * mx * my + c1) * (2 * cov + c2) /
                              ((mx**2 + my**2 + c1) * (vx + vy + c2))))
    return np.mean(values)


def frechet(a, b):
    """pytorch_fid.fid_score.calculate_frechet_distance."""
    mean_a, mean_b = a.mean(0), b.mean(0)
    cov_a, cov_b = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = linalg.sqrtm(cov_a @ cov_b)
    return np.sum((mean_a - mean_b) ** 2) + np.trace(cov_a + cov_b) - 2 * np.trace(np.real(root))


def frechet_by_products(a, b):
    """The same for few vectors: the roots of the eigenvalues of C1 C2 are the singular values of
    the products of the vectors, so that no root of a singular matrix is taken."""
    x, y = a - a.mean(0), b - b.mean(0)
    n = len(a) - 1
    traces = (np.sum(x**2) + np.sum(y**2)) / n
    roots = linalg.svdvals(x @ y.T).sum() / n
    return np.sum((a.mean(0) - b.mean(0)) ** 2) + traces - 2 * roots


def kid(a, b):
    """torch_fidelity.metric_kid.mmd2 with the kernel polynomial_kernel(degree=3, coef0=1)."""
    kernel = lambda x, y: (x @ y.T / x.shape[1] + 1) ** 3
    n = len(a)
    pairs = lambda k: (k.sum() - np.trace(k)) / (n * (n - 1))
    return pairs(kernel(a, a)) + pairs(kernel(b, b)) - 2 * kernel(a, b).mean()


real = pictures(3, 40, 37).astype(np.float32)
fake = (real + random.normal(0, 0.06, real.shape)).astype(np.float32)
out = {"real": real, "fake": fake}
for border in [0, BORDER]:
    for channels, change in [("rgb", lambda x: x), ("y", to_y)]:
        for name, metric in [("psnr", psnr), ("ssim", ssim)]:
            out[f"{name}_{channels}_{border}"] = np.array(
                [metric(crop(change(to_bytes(a)), border), crop(change(to_bytes(b)), border))
                 for a, b in zip(real, fake)])
double = lambda x: x.astype(np.float64)
out["psnr_raw"] = np.array([peak_signal_noise_ratio(double(a), double(b), data_range=1)
                            for a, b in zip(real, fake)])
# Without the border to which scikit-image's mean over whole windows does not go.
out["ssim_raw"] = np.array([
    structural_similarity(double(a), double(b), data_range=1, channel_axis=0,
                          gaussian_weights=True, sigma=1.5, use_sample_covariance=False)
    for a, b in zip(real, fake)])

mixed = random.normal(size=(6, 6))
out["many_a"] = (random.normal(size=(200, 6)) @ mixed).astype(np.float32)
out["many_b"] = (random.normal(size=(200, 6)) * [1, 2, 0.5, 1, 1, 3] + 0.5).astype(np.float32)
out["few_a"] = random.normal(size=(9, 24)).astype(np.float32)
out["few_b"] = (random.normal(size=(9, 24)) * 2 + 1).astype(np.float32)
many = double(out["many_a"]), double(out["many_b"])
few = double(out["few_a"]), double(out["few_b"])
assert abs(frechet(*many) - frechet_by_products(*many)) < 1e-9
assert abs(frechet(*few) - frechet_by_products(*few)) < 1e-4  # sqrtm loses half of the digits
out["many_fid"] = np.array([frechet(*many)])
out["few_fid"] = np.array([frechet_by_products(*few)])
out["many_kid"] = np.array([kid(*many)])
out["few_kid"] = np.array([kid(*few)])

for name, value in out.items():
    if value.ndim == 1:
        print(name, value)
save_file({name: np.ascontiguousarray(value) for name, value in out.items()},
          FOLDER / "metrics.safetensors")
