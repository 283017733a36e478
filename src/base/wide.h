// Wide: 128 bits, for products that are divided once. GCC and Clang have it on every 64-bit target.
#pragma once

namespace bmgpu {

__extension__ typedef __int128 Wide;

}  // namespace bmgpu
