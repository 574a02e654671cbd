#pragma once

// Losses of classes, images, features and discriminators, and their weights over a training.

#include "iterators/losses/adversarial.h"
#include "iterators/losses/cross_entropy.h"
#include "iterators/losses/image_losses.h"
#include "iterators/losses/loss_manager.h"
#include "iterators/losses/perceptual.h"
