// Compiled with the kernels, in every mode: tells the tests which one it is.
#include "mode.hpp"

int support::random_cases(int all) {
#if defined(TYPEFORMER_SIMT_RACECHECK) || defined(__SANITIZE_ADDRESS__)
  return all / 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return all / 10;
#else
  return all;
#endif
#else
  return all;
#endif
}
