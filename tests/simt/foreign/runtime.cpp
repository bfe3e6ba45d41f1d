// The stand-ins as a library: all their functions, compiled against NVIDIA's own declarations.
#define TYPEFORMER_SIMT_EXPORT
#define TYPEFORMER_SIMT_NVIDIA_HEADERS
#include "typeformer/simt/cublaslt.hpp"
