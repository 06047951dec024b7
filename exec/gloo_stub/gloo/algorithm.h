// LibTorch's ProcessGroupGloo.hpp includes five Gloo headers which its wheel does not ship. It only
// holds Gloo's types through pointers, so declarations do. The library itself is inside
// libtorch_cpu.so. Never call Gloo through these.
#pragma once
