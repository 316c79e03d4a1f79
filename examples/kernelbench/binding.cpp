/*
 * Between PyTorch and the launch: two float tensors on a GPU, broadcast to one shape, with the stream and the memory
 * from PyTorch. The Python part has checked them.
 */
#include "mean.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

torch::Tensor mean_loss(const torch::Tensor &predictions, const torch::Tensor &targets, double divisor) {
    TORCH_CHECK(predictions.device() == targets.device(), "predictions are on ", predictions.device(),
                " and targets on ", targets.device(), "; expected one GPU");
    const c10::cuda::CUDAGuard guard(predictions.device());
    const torch::Tensor both[] = {predictions, targets};
    const torch::Tensor value = torch::empty({}, predictions.options());
    const torch::Tensor workspace = torch::empty({MEAN_WORKSPACE}, predictions.options().dtype(torch::kUInt8));
    mean_call call;
    call.ndim = (int32_t)both[0].dim();
    call.shape = both[0].sizes().data();
    for (int which = 0; which < 2; which++) {
        call.data[which] = both[which].const_data_ptr<float>();
        call.stride[which] = both[which].strides().data();
    }
    call.divisor = divisor;
    call.value = value.mutable_data_ptr<float>();
    call.workspace = workspace.mutable_data_ptr();
    call.stream = c10::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(mean_launch(&call));
    return value;
}
