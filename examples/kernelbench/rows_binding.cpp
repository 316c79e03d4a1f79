/*
 * Between PyTorch and the launches of rows.cu: rows of float logits and their labels on a GPU, with the stream and the
 * memory from PyTorch. The Python part has checked them.
 */
#include "rows.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

torch::Tensor mean_of_rows(const torch::Tensor &predictions, const torch::Tensor &targets) {
    TORCH_CHECK(predictions.device() == targets.device(), "predictions are on ", predictions.device(),
                " and targets on ", targets.device(), "; expected one GPU");
    const c10::cuda::CUDAGuard guard(predictions.device());
    rows_call call;
    call.rows = predictions.size(0);
    call.classes = predictions.size(1);
    const torch::Tensor value = torch::empty({}, predictions.options());
    const torch::Tensor workspace =
        torch::empty({(int64_t)ROWS_WORKSPACE(call.rows)}, predictions.options().dtype(torch::kUInt8));
    call.predictions = predictions.const_data_ptr<float>();
    call.row_stride = predictions.stride(0);
    call.class_stride = predictions.stride(1);
    call.targets = targets.const_data_ptr<int64_t>();
    call.target_stride = targets.stride(0);
    call.value = value.mutable_data_ptr<float>();
    call.workspace = workspace.mutable_data_ptr();
    call.stream = c10::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(rows_launch(&call));
    return value;
}
