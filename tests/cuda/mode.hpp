/// The way in which a program runs the kernels, for tests that are compiled once for all of them.
#pragma once

namespace support {

/// How many random cases a test draws: all of them, or a tenth where every access is checked.
int random_cases(int all);

}  // namespace support
