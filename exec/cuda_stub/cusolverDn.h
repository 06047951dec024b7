// Names that LibTorch's CUDA headers mention; only target nccl_check sees them
// (exec/CMakeLists.txt).
#pragma once

#include <cusolver_common.h>
typedef struct cusolverDnContext* cusolverDnHandle_t;
