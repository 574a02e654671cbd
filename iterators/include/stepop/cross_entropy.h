#pragma once

// Cross entropy as a mean that knows its weight.

#include "iterators/losses/cross_entropy.h"
