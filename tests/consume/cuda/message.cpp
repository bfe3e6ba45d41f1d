#include <typeformer/core/error.hpp>

const char* message(const typeformer::Error& error) { return error.what(); }
