// The conformance program on the host layer.
#include "conformance.cuh"
