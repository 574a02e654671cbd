#pragma once

// All that a file with components of a user's own needs: networks, datasets, iterators, callbacks,
// schedules. It is precompiled once; files of this tree include the parts that they use instead.
//
// The layers of LibTorch that most networks are made of are here, as the templates of what is
// included cost every compile anew. For others, and for losses as modules, #include <torch/nn.h> or
// the header that is needed: <torch/nn/modules/rnn.h>; <torch/nn/modules/normalization.h> for
// LayerNorm and GroupNorm, which brings autograd's own functions and costs a second alone.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/functional.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/types.h>

// First, as the compiler's messages on ops name the path by which it was included.
#include "runtime/train/iterator/step_ops.h"

#include "eval_out/callbacks/callback.h"
#include "runtime/core/base/abi.h"
#include "runtime/core/config/config.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/measure/profile.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"
#include "runtime/data/text/tokenizer.h"
#include "runtime/data/views/example_function.h"
#include "runtime/data/views/standardization.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/iterator/eval_functor.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/evaluation_mode.h"
#include "runtime/train/networks/module_templates.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/optimizer.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/update.h"
