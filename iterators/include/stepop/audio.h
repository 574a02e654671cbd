#pragma once

// Mel spectrograms, and sound at another sampling rate.

#include "iterators/audio/mel.h"
#include "iterators/audio/resample.h"
