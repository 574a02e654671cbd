#pragma once

// A network that computes its own loss, and how it is sampled: for the iterators Trainer and
// AdversarialTrainer.

#include "iterators/trainer/loss_model.h"
#include "iterators/trainer/model_sampler.h"
