// clones.h - SC_CLONES before a function compiles it a second time for AVX2; the loader picks one.
// The results are the same bits on all: CMakeLists.txt forbids contraction to fused multiply-add.
#ifndef SC_CLONES_H
#define SC_CLONES_H

// Resolvers run before a sanitizer's runtime is set up, so instrumented builds go without.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SC_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SC_SANITIZED
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(SC_SANITIZED)
#define SC_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define SC_CLONES
#endif

#endif
