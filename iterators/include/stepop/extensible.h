#pragma once

// For your own injectors, losses and evaluators of the iterator ExtensibleTrainer, and for networks
// with hooks.

#include "iterators/extensible/evaluator.h"
#include "iterators/extensible/injector.h"
#include "iterators/extensible/loss.h"
#include "iterators/extensible/network_hooks.h"
