#pragma once

// A trained network of a run, in a program of your own.

#include "runtime/train/networks/load_network.h"
