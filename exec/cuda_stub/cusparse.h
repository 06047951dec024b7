// Names that LibTorch's CUDA headers mention; only target nccl_check sees them
// (exec/CMakeLists.txt).
#pragma once

typedef struct cusparseContext* cusparseHandle_t;
typedef enum { CUSPARSE_STATUS_SUCCESS } cusparseStatus_t;
