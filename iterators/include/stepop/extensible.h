#pragma once

// For your own injectors, losses and evaluators of the iterator ExtensibleTrainer.

#include "iterators/extensible/evaluator.h"
#include "iterators/extensible/injector.h"
#include "iterators/extensible/loss.h"
