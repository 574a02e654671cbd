#pragma once

// Mel spectrograms, and resampling of audio.

#include "iterators/audio/mel.h"
#include "iterators/audio/resample.h"
