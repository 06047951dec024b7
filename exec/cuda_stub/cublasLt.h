// Names that LibTorch's CUDA headers mention; only target nccl_check sees them
// (exec/CMakeLists.txt).
#pragma once

typedef struct cublasLtContext* cublasLtHandle_t;
