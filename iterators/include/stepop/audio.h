#pragma once

// Mel spectrograms, and resampling of audio.

#include "iterators/audio/mel.h"
#include "runtime/data/datasets/resample.h"
