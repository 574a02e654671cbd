#pragma once

// All that a file with components of a user's own needs: networks, datasets, iterators, callbacks,
// schedules. It is precompiled once; files of this tree include the parts that they use instead.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/types.h>

#include "eval_out/callback.h"
#include "runtime/code/abi.h"
#include "runtime/config/config.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"
#include "runtime/loop/eval_functor.h"
#include "runtime/loop/iterator.h"
#include "runtime/network.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/schedule.h"
#include "runtime/profile.h"
