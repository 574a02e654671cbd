#pragma once

// A filter of your own for the records of TarShards.

#include "runtime/data/streams/record_filter.h"
