// The conformance program on a GPU.
#include "conformance.cuh"
