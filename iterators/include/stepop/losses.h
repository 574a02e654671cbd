#pragma once

// Losses of images, of features and of discriminators, and their weights over a training.

#include "iterators/losses/adversarial.h"
#include "iterators/losses/image_losses.h"
#include "iterators/losses/loss_manager.h"
#include "iterators/losses/perceptual.h"
