#pragma once

// For your own injectors, losses and evaluators of the iterator ExtensibleTrainer, and for networks
// with hooks.

#include "iterators/extensible/step/evaluator.h"
#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/loss.h"
#include "iterators/extensible/step/network_hooks.h"
