// Compiled with the kernels, in every mode: tells the tests which one it is.
#include "mode.hpp"

#include <cstdlib>

namespace {

/// How much longer a launch takes than in the plain mode, roughly.
int slowness() {
  if (std::getenv("TYPEFORMER_PTX")) return 10;  // interpreted
#if defined(TYPEFORMER_SIMT_RACECHECK) || defined(__SANITIZE_ADDRESS__)
  return 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return 10;
#endif
#endif
  return 1;
}

}  // namespace

int support::random_cases(int all) { return all / slowness(); }
