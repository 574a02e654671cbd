#include "runtime/train/networks/module_templates.h"

#define STEPOP_MODULE_TEMPLATE(name) template class torch::nn::Cloneable<torch::nn::name##Impl>;
STEPOP_MODULE_TEMPLATES(STEPOP_MODULE_TEMPLATE)
#undef STEPOP_MODULE_TEMPLATE

template class torch::nn::ConvNdImpl<1, torch::nn::Conv1dImpl>;
template class torch::nn::ConvNdImpl<2, torch::nn::Conv2dImpl>;
template class torch::nn::ConvNdImpl<3, torch::nn::Conv3dImpl>;
template class torch::nn::ConvNdImpl<1, torch::nn::ConvTranspose1dImpl>;
template class torch::nn::ConvNdImpl<2, torch::nn::ConvTranspose2dImpl>;
template class torch::nn::ConvNdImpl<3, torch::nn::ConvTranspose3dImpl>;
template class torch::nn::ConvTransposeNdImpl<1, torch::nn::ConvTranspose1dImpl>;
template class torch::nn::ConvTransposeNdImpl<2, torch::nn::ConvTranspose2dImpl>;
template class torch::nn::ConvTransposeNdImpl<3, torch::nn::ConvTranspose3dImpl>;
