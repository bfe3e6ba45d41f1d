/// What the executor tells the race checker. Without TYPEFORMER_SIMT_RACECHECK every call is empty.
#pragma once
#include <cstddef>
#include <cstdint>

#include "typeformer/simt/fault.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

struct Block;
struct Lane;
struct Operation;
struct Stamp;
struct Warp;

/// Kinds of memory access that the layer itself makes for a kernel.
enum class Access : std::uint8_t { load, store, atomic, async_source, async_issue, async_arrival };

#if defined(TYPEFORMER_SIMT_RACECHECK)
void checker_access(Lane& lane, const void* address, std::size_t bytes, Access access, Place place);
void checker_rows(Warp& warp, const void* const* rows, unsigned matrices, Place place);
void checker_warp_sync(Warp& warp, unsigned mask);
void checker_fence(Lane& lane);
void checker_block_begin(Block& block);
void checker_block_end(Block& block);
/// Tells what was found since the last call; false when there is nothing.
bool checker_new_finding(std::string& where, std::string& what);
/// Looks at the memory that an operation is known to use. Kernels tell their accesses themselves. outermost: it is no
/// part of a graph's launch, and no other operation waits for it.
void checker_operation(const Operation& operation, const Stamp& stamp, bool outermost);
/// A kernel begins; its blocks' numbers are [first, first + blocks).
void checker_launch(std::uint64_t first, std::uint64_t blocks);
void checker_allocate(const void* address, std::size_t bytes);
void checker_release(const void* address);
#else
inline void checker_access(Lane&, const void*, std::size_t, Access, Place) {}
inline void checker_rows(Warp&, const void* const*, unsigned, Place) {}
inline void checker_warp_sync(Warp&, unsigned) {}
inline void checker_fence(Lane&) {}
inline void checker_block_begin(Block&) {}
inline void checker_block_end(Block&) {}
inline bool checker_new_finding(std::string&, std::string&) { return false; }
inline void checker_operation(const Operation&, const Stamp&, bool) {}
inline void checker_launch(std::uint64_t, std::uint64_t) {}
inline void checker_allocate(const void*, std::size_t) {}
inline void checker_release(const void*) {}
#endif

}  // namespace typeformer
