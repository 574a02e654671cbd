#pragma once

// How alike two images are: PSNR and SSIM.

#include "iterators/metrics/similarity.h"
