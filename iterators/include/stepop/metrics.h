#pragma once

// The similarity of two images: PSNR and SSIM.

#include "iterators/metrics/similarity.h"
