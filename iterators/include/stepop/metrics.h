#pragma once

// Metrics of training steps and evaluations, and the similarity of two images: PSNR and SSIM.

#include "iterators/metrics/metric.h"
#include "iterators/metrics/running_metrics.h"
#include "iterators/metrics/similarity.h"
