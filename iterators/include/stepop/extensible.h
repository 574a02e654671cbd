#pragma once

// Injectors, losses and evaluators of your own for the iterator ExtensibleTrainer.

#include "iterators/extensible/evaluator.h"
#include "iterators/extensible/injector.h"
#include "iterators/extensible/loss.h"
