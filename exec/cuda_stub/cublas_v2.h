// Names that LibTorch's CUDA headers mention; only target nccl_check sees them
// (exec/CMakeLists.txt).
#pragma once

typedef struct cublasContext* cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS } cublasStatus_t;
