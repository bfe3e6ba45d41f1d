// The race checker's runtime: linked into programs whose kernels are compiled with -fsanitize=thread.
#include "typeformer/simt/tsan_interface.hpp"
