#pragma once

// The members of LibTorch's layers that stepop.h includes are compiled once, in libstepop.so:
// otherwise each file of a user's own compiles all of them, used or not.

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

// clang-format off
#define STEPOP_MODULE_TEMPLATES(each)                                                             \
  each(ELU) each(SELU) each(Hardshrink) each(Hardtanh) each(LeakyReLU) each(LogSigmoid)           \
  each(Softmax) each(Softmin) each(LogSoftmax) each(Softmax2d) each(PReLU) each(ReLU)             \
  each(ReLU6) each(RReLU) each(CELU) each(GLU) each(GELU) each(SiLU) each(Mish) each(Sigmoid)     \
  each(Softplus) each(Softshrink) each(Softsign) each(Tanh) each(Tanhshrink) each(Threshold)      \
  each(MultiheadAttention) each(BatchNorm1d) each(BatchNorm2d) each(BatchNorm3d)                  \
  each(Sequential) each(Conv1d) each(Conv2d) each(Conv3d) each(ConvTranspose1d)                   \
  each(ConvTranspose2d) each(ConvTranspose3d) each(Dropout) each(Dropout2d) each(Dropout3d)       \
  each(AlphaDropout) each(FeatureAlphaDropout) each(Embedding) each(EmbeddingBag)                 \
  each(Identity) each(Linear) each(Flatten) each(Unflatten) each(Bilinear) each(AvgPool1d)        \
  each(AvgPool2d) each(AvgPool3d) each(MaxPool1d) each(MaxPool2d) each(MaxPool3d)                 \
  each(AdaptiveMaxPool1d) each(AdaptiveMaxPool2d) each(AdaptiveMaxPool3d)                         \
  each(AdaptiveAvgPool1d) each(AdaptiveAvgPool2d) each(AdaptiveAvgPool3d) each(MaxUnpool1d)       \
  each(MaxUnpool2d) each(MaxUnpool3d) each(FractionalMaxPool2d) each(FractionalMaxPool3d)         \
  each(LPPool1d) each(LPPool2d) each(LPPool3d)
// clang-format on

#define STEPOP_MODULE_TEMPLATE(name) \
  extern template class torch::nn::Cloneable<torch::nn::name##Impl>;
STEPOP_MODULE_TEMPLATES(STEPOP_MODULE_TEMPLATE)
#undef STEPOP_MODULE_TEMPLATE

extern template class torch::nn::ConvNdImpl<1, torch::nn::Conv1dImpl>;
extern template class torch::nn::ConvNdImpl<2, torch::nn::Conv2dImpl>;
extern template class torch::nn::ConvNdImpl<3, torch::nn::Conv3dImpl>;
extern template class torch::nn::ConvNdImpl<1, torch::nn::ConvTranspose1dImpl>;
extern template class torch::nn::ConvNdImpl<2, torch::nn::ConvTranspose2dImpl>;
extern template class torch::nn::ConvNdImpl<3, torch::nn::ConvTranspose3dImpl>;
extern template class torch::nn::ConvTransposeNdImpl<1, torch::nn::ConvTranspose1dImpl>;
extern template class torch::nn::ConvTransposeNdImpl<2, torch::nn::ConvTranspose2dImpl>;
extern template class torch::nn::ConvTransposeNdImpl<3, torch::nn::ConvTranspose3dImpl>;

#ifdef __clang__
#include <torch/csrc/jit/ir/attributes.h>

#include "runtime/core/base/type_templates.h"

// As type_templates.h, for layers whose virtual functions are all inline: 0.3 s.
namespace stepop {

/// Is never called.
template <class Layer, class Base>
void instantiate_layer(const torch::nn::Module& module, Layer& layer, std::ostream& out) {
  layer = *std::dynamic_pointer_cast<Layer>(module.clone());
  layer.torch::nn::template Cloneable<Layer>::clone();
  layer.Base::pretty_print(out);
}

inline void instantiate_layers(const torch::nn::Module& module, std::ostream& out,
                               torch::nn::Conv1dImpl& conv1, torch::nn::Conv2dImpl& conv2,
                               torch::nn::Conv3dImpl& conv3, torch::nn::ConvTranspose1dImpl& back1,
                               torch::nn::ConvTranspose2dImpl& back2,
                               torch::nn::ConvTranspose3dImpl& back3,
                               torch::nn::SequentialImpl& layers,
                               const torch::jit::ComplexValsAttr& complexes,
                               const torch::jit::TypesAttr& types,
                               const torch::jit::TensorsAttr& tensors) {
  using namespace torch::nn;
  instantiate_layer<Conv1dImpl, ConvNdImpl<1, Conv1dImpl>>(module, conv1, out);
  instantiate_layer<Conv2dImpl, ConvNdImpl<2, Conv2dImpl>>(module, conv2, out);
  instantiate_layer<Conv3dImpl, ConvNdImpl<3, Conv3dImpl>>(module, conv3, out);
  instantiate_layer<ConvTranspose1dImpl, ConvTransposeNdImpl<1, ConvTranspose1dImpl>>(module, back1,
                                                                                      out);
  instantiate_layer<ConvTranspose2dImpl, ConvTransposeNdImpl<2, ConvTranspose2dImpl>>(module, back2,
                                                                                      out);
  instantiate_layer<ConvTranspose3dImpl, ConvTransposeNdImpl<3, ConvTranspose3dImpl>>(module, back3,
                                                                                      out);
  instantiate_layer<SequentialImpl, SequentialImpl>(module, layers, out);
  complexes.torch::jit::ComplexValsAttr::clone();
  types.torch::jit::TypesAttr::clone();
  tensors.torch::jit::TensorsAttr::clone();
}

}  // namespace stepop
#endif
