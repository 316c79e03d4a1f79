/*
 * Between PyTorch and the launches of vectors.cu: rows of float vectors on a GPU, with the stream and the memory from
 * PyTorch. The Python part has checked them.
 */
#include "vectors.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

torch::Tensor mean_of_vectors(const torch::Tensor &anchor, const torch::Tensor &positive, const torch::Tensor &negative,
                              double margin) {
    const torch::Tensor *const vectors[] = {&anchor, &positive, &negative};
    const c10::cuda::CUDAGuard guard(anchor.device());
    vectors_call call;
    call.rows = anchor.size(0);
    call.length = anchor.size(1);
    call.margin = margin;
    for (int k = 0; k < 3; k++) {
        TORCH_CHECK(vectors[k]->device() == anchor.device(), "vectors are on ", anchor.device(), " and on ",
                    vectors[k]->device(), "; expected one GPU");
        call.vectors[k] = vectors[k]->const_data_ptr<float>();
        call.row_stride[k] = vectors[k]->stride(0);
        call.element_stride[k] = vectors[k]->stride(1);
    }
    const torch::Tensor value = torch::empty({}, anchor.options());
    const torch::Tensor workspace =
        torch::empty({(int64_t)vectors_workspace(&call)}, anchor.options().dtype(torch::kUInt8));
    call.value = value.mutable_data_ptr<float>();
    call.workspace = workspace.mutable_data_ptr();
    call.stream = c10::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(vectors_launch(&call));
    return value;
}
