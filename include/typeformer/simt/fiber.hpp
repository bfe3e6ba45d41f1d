/// Stackful fibers: a CUDA thread is a fiber. Switching is assembly on x86-64 and aarch64, ucontext elsewhere.
#pragma once
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "typeformer/core/error.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define TYPEFORMER_SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TYPEFORMER_SIMT_ASAN 1
#endif
#endif
#if defined(TYPEFORMER_SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(TYPEFORMER_SIMT_UCONTEXT)
#define TYPEFORMER_SIMT_UCONTEXT 1
#endif
#if defined(TYPEFORMER_SIMT_UCONTEXT)
#include <ucontext.h>
#endif

// Functions of the layer that touch a kernel's memory on its behalf: the race checker must not see them as the
// kernel's.
#define TYPEFORMER_SIMT_UNSEEN __attribute__((no_sanitize_thread))

namespace typeformer::inline TYPEFORMER_ABI::simt {

#if defined(TYPEFORMER_SIMT_ASAN)
inline constexpr std::size_t fiber_default_stack = std::size_t{256} << 10;
#else
inline constexpr std::size_t fiber_default_stack = std::size_t{64} << 10;
#endif

/// One execution context. The stack belongs to the fiber and is reused from run to run.
struct Fiber {
  void* stack_pointer = nullptr;  // where the assembly switch resumes
  char* stack = nullptr;          // lowest usable byte
  std::size_t stack_bytes = 0;
  unsigned color = 0;  // stacks are page-strided: without an offset all hot frames would share the same L1 sets
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;
#if defined(TYPEFORMER_SIMT_UCONTEXT)
  ucontext_t context;
#endif
#if defined(TYPEFORMER_SIMT_ASAN)
  void* fake_stack = nullptr;
#endif
};

#if !defined(TYPEFORMER_SIMT_UCONTEXT)
#if defined(__x86_64__)
// Saves the callee-saved registers on this stack and goes on with the other one. MXCSR and the x87 control word stay as
// they are: kernels do not change rounding modes. The indirect jump avoids a return-stack misprediction.
__attribute__((naked, noinline, used)) TYPEFORMER_SIMT_UNSEEN inline void switch_context(void** /*save*/,
                                                                                         void* /*load*/) {
  asm volatile(
      "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
      "movq %rsp,(%rdi)\n movq %rsi,%rsp\n"
      "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
      "popq %rcx\n jmp *%rcx\n");
}
__attribute__((naked, noinline, used)) TYPEFORMER_SIMT_UNSEEN inline void enter_context() {
  asm volatile(".cfi_undefined rip\n movq %r12,%rdi\n callq *%r13\n ud2\n");
}
#else
extern "C" void typeformer_simt_switch(void**, void*);
extern "C" void typeformer_simt_enter();
asm(".pushsection .text.typeformer_simt_switch,\"axG\",%progbits,typeformer_simt_switch,comdat\n"
    ".weak typeformer_simt_switch\n.type typeformer_simt_switch,%function\ntypeformer_simt_switch:\n"
    "sub sp,sp,#160\n stp x19,x20,[sp]\n stp x21,x22,[sp,#16]\n stp x23,x24,[sp,#32]\n stp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\n stp x29,x30,[sp,#80]\n stp d8,d9,[sp,#96]\n stp d10,d11,[sp,#112]\n"
    "stp d12,d13,[sp,#128]\n stp d14,d15,[sp,#144]\n mov x9,sp\n str x9,[x0]\n mov sp,x1\n"
    "ldp x19,x20,[sp]\n ldp x21,x22,[sp,#16]\n ldp x23,x24,[sp,#32]\n ldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\n ldp x29,x30,[sp,#80]\n ldp d8,d9,[sp,#96]\n ldp d10,d11,[sp,#112]\n"
    "ldp d12,d13,[sp,#128]\n ldp d14,d15,[sp,#144]\n add sp,sp,#160\n ret\n.popsection\n"
    ".pushsection .text.typeformer_simt_enter,\"axG\",%progbits,typeformer_simt_enter,comdat\n"
    ".weak typeformer_simt_enter\n.type typeformer_simt_enter,%function\ntypeformer_simt_enter:\n"
    "mov x0,x19\n blr x20\n brk #1\n.popsection\n");
inline void switch_context(void** save, void* load) { typeformer_simt_switch(save, load); }
#endif
#else
inline void enter_ucontext(unsigned low, unsigned high) {
  auto* fiber = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  fiber->entry(fiber->argument);
}
#endif

inline std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Gives the fiber a stack with a guard page below it. Throws Error when the system has no memory.
inline void allocate_stack(Fiber& fiber, std::size_t bytes) {
  const std::size_t page = page_size();
  bytes = (bytes + page - 1) / page * page;
  void* memory =
      mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("simt", "thread stack", "memory for it", "none left");
  mprotect(memory, page, PROT_NONE);
  fiber.stack = static_cast<char*>(memory) + page;
  fiber.stack_bytes = bytes;
}

inline void free_stack(Fiber& fiber) {
  if (fiber.stack) munmap(fiber.stack - page_size(), fiber.stack_bytes + page_size());
  fiber.stack = nullptr;
}

/// Makes the first switch to the fiber call entry(argument), which never returns.
TYPEFORMER_SIMT_UNSEEN inline void prepare(Fiber& fiber, void (*entry)(void*), void* argument) {
  fiber.entry = entry;
  fiber.argument = argument;
#if defined(TYPEFORMER_SIMT_ASAN)
  __asan_unpoison_memory_region(fiber.stack, fiber.stack_bytes);
  fiber.fake_stack = nullptr;
#endif
#if defined(TYPEFORMER_SIMT_UCONTEXT)
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = fiber.stack_bytes;
  fiber.context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(&fiber);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(enter_ucontext), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(static_cast<std::uint64_t>(address) >> 32));
#else
  char* end = fiber.stack + fiber.stack_bytes - (fiber.color & 31u) * 128u;  // mmap's pages are 64-byte aligned
#if defined(__x86_64__)
  void** top = reinterpret_cast<void**>(end) - 9;
  std::memset(top, 0, 9 * sizeof(void*));            // the zeros above the return address end backtraces
  top[2] = reinterpret_cast<void*>(entry);           // r13
  top[3] = argument;                                 // r12
  top[6] = reinterpret_cast<void*>(&enter_context);  // return address
#else
  void** top = reinterpret_cast<void**>(end) - 20;
  std::memset(top, 0, 20 * sizeof(void*));
  top[0] = argument;                                          // x19
  top[1] = reinterpret_cast<void*>(entry);                    // x20
  top[11] = reinterpret_cast<void*>(&typeformer_simt_enter);  // x30
#endif
  fiber.stack_pointer = top;
#endif
}

/// Makes the fiber stand for the calling operating-system thread, whose stack AddressSanitizer must know.
inline void adopt_thread(Fiber& fiber) {
#if defined(TYPEFORMER_SIMT_ASAN)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  pthread_attr_getstack(&attributes, &low, &fiber.stack_bytes);
  pthread_attr_destroy(&attributes);
  fiber.stack = static_cast<char*>(low);
#else
  (void)fiber;
#endif
}

/// The first thing that a fiber's entry function does.
inline void fiber_started() {
#if defined(TYPEFORMER_SIMT_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

/// Goes on with `to`; returns when somebody switches back to `from`. `from` may be given up for good.
TYPEFORMER_SIMT_UNSEEN inline void switch_fiber(Fiber& from, Fiber& to, bool from_ends = false) {
  (void)from_ends;
#if defined(TYPEFORMER_SIMT_ASAN)
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#if defined(TYPEFORMER_SIMT_UCONTEXT)
  swapcontext(&from.context, &to.context);
#else
  switch_context(&from.stack_pointer, to.stack_pointer);
#endif
#if defined(TYPEFORMER_SIMT_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

}  // namespace typeformer
