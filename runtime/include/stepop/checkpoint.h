#pragma once

// A checkpoint in a program of your own: its state, its position and its config.

#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/checkpoint/checkpoint.h"
