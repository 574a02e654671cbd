#pragma once

// An augmentation of your own, for the dataset Augment.

#include "runtime/data/augmentations/augmentation.h"
#include "runtime/data/augmentations/geometry.h"
