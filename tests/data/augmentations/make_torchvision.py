"""Makes torchvision.safetensors: what torchvision 0.28's transforms.v2 make of a picture.

    pip install torchvision==0.28.0 safetensors && python3 make_torchvision.py torchvision.safetensors
"""
import math
import sys

import torch
from safetensors.torch import save_file
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

torch.manual_seed(0)
H, W = 13, 18
x = torch.nn.functional.interpolate(torch.rand(1, 3, 5, 6), (H, W), mode="bicubic")[0].clamp(0, 1)
# As the images of a dataset: bytes as numbers.
x = (x * 255).round() / 255
mask = tv_tensors.Mask((torch.arange(H * W).reshape(1, H, W) // 7 % 5).to(torch.uint8))
boxes = tv_tensors.BoundingBoxes([[2.0, 3, 9, 7], [0, 0, 18, 13]], format="XYXY", canvas_size=(H, W))
points = tv_tensors.KeyPoints([[2.0, 3], [9, 7], [0, 0]], canvas_size=(H, W))
saved = {"image": x, "mask": mask, "boxes": boxes, "points": points}


def keep(name, function, half=0.5):
    for kind, value in (("image", x), ("mask", mask), ("boxes", boxes)):
        saved[f"{name}/{kind}"] = function(value)
    # Here (0, 0) is the centre of the first pixel. In torchvision it is so when keypoints are mirrored and cut, and
    # is the pixel's corner when they are turned.
    saved[f"{name}/points"] = function(tv_tensors.KeyPoints(points + half, canvas_size=(H, W))) - half


bilinear = v2.InterpolationMode.BILINEAR


def affine(name, angle=0.0, translate=(0, 0), scale=1.0, shear=(0.0, 0.0), center=None):
    keep(name, lambda v: F.affine(v, angle, list(translate), scale, list(shear), center=center,
                                  **({"interpolation": bilinear} if v is x else {})))


affine("turned", angle=20)
affine("moved", translate=(3, -2))
affine("enlarged", scale=1.27)
affine("sheared", shear=(10, -5))
affine("all", -35.0, (2, 1), 0.8, (12.0, 0.0))
affine("corner", shear=(math.degrees(math.atan(0.19)), 0.0), center=[0, 0])
start = [[0, 0], [W - 1, 0], [W - 1, H - 1], [0, H - 1]]
end = [[2, 1], [W - 4, 2], [W - 1, H - 3], [3, H - 2]]
keep("perspective", lambda v: F.perspective(v, start, end, **({"interpolation": bilinear} if v is x else {})))
keep("mirrored", F.horizontal_flip, half=0)
keep("upside", F.vertical_flip, half=0)
keep("part", lambda v: F.crop(v, 3, -2, 8, 9), half=0)
saved["smaller/image"] = F.resize(x, [7, 5], antialias=True)
saved["larger/image"] = F.resize(x, [20, 31], antialias=True)
saved["larger/boxes"] = F.resize(boxes, [20, 31])
for name, value in {
    "brightness": F.adjust_brightness(x, 1.4),
    "contrast": F.adjust_contrast(x, 0.6),
    "saturation": F.adjust_saturation(x, 1.7),
    "hue": F.adjust_hue(x, 0.2),
    "grey": F.rgb_to_grayscale(x, 3),
    "posterized": F.posterize(x, 3),
    "solarized": F.solarize(x, 0.6),
    "autocontrast": F.autocontrast(x),
    "equalized": F.equalize(x),
    "sharper": F.adjust_sharpness(x, 1.8),
    "smoother": F.adjust_sharpness(x, 0.3),
    "blurred": F.gaussian_blur(x, [5, 5], [1.3, 1.3]),
}.items():
    saved["colour/" + name] = value

# Means over many draws of what is random. RandomResizedCrop: area, width by height, centre.
picture = torch.empty(3, 40, 60)
crops = [v2.RandomResizedCrop(8).make_params([picture]) for _ in range(20000)]
h, w, top, left = (torch.tensor([float(crop[k]) for crop in crops]) for k in ("height", "width", "top", "left"))
saved["means/crop"] = torch.stack([(h * w / 2400).mean(), (h * w / 2400).std(), (w / h).log().mean(),
                                   (w / h).log().std(), (top + h / 2).mean(), (left + w / 2).mean()])
erased = [v2.RandomErasing(p=1).make_params([picture]) for _ in range(20000)]
h, w = torch.tensor([[e["h"], e["w"]] for e in erased]).double().unbind(1)
saved["means/erasing"] = torch.stack([(h * w / 2400).mean(), (h * w / 2400).std(), (h / w).log().mean()])
cut = v2.CutMix(num_classes=2)
shares = torch.tensor([cut.make_params([picture])["lam_adjusted"] for _ in range(20000)])
saved["means/cutmix"] = torch.stack([shares.mean(), shares.std()])
save_file({k: v.as_subclass(torch.Tensor).contiguous() for k, v in saved.items()}, sys.argv[1])
