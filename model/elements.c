// elements.c - conversions, by runtime/data/float.c; of operands, by tables of all codes, filled
// when the library is loaded.
#include "elements.h"

#include <string.h>

#include "runtime/run.h"

static float f16[1 << 16], bf16[1 << 16], e4m3[1 << 8], e5m2[1 << 8];
const float *const md_values[4] = {
    [MD_F16] = f16, [MD_BF16] = bf16, [MD_E4M3] = e4m3, [MD_E5M2] = e5m2};

__attribute__((constructor)) static void fill(void) {
  for (u32 i = 0; i < COUNT(f16); i++) {
    f16[i] = sc_of_f16((u16)i);
    bf16[i] = sc_of_bf16((u16)i);
  }
  for (u32 i = 0; i < COUNT(e4m3); i++) {
    e4m3[i] = (float)sc_get_elem(EL_E4M3, &(u8){(u8)i}, 0);
    e5m2[i] = (float)sc_get_elem(EL_E5M2, &(u8){(u8)i}, 0);
  }
}

unsigned short md_to_f16(float x) { return sc_to_f16(x); }
float md_of_f16(unsigned short bits) { return f16[bits]; }
unsigned short md_to_bf16(float x) { return sc_to_bf16(x); }
unsigned short md_to_e4m3(float x) { return sc_to_e4m3(x); }
float md_of_e4m3(unsigned short bits) { return e4m3[bits & 0xff]; }
unsigned short md_to_e5m2(float x) { return sc_to_e5m2(x); }
float md_of_e5m2(unsigned short bits) { return e5m2[bits & 0xff]; }

void md_add_element(u32 elem, void *to, const void *from) {
  static const Elem type[] = {
      [MAP_F16] = EL_F16, [MAP_BF16] = EL_BF16, [MAP_F32] = EL_F32, [MAP_I32] = EL_I32};
  Elem e = type[elem];
  if (e == EL_I32) {
    u32 a, b;
    memcpy(&a, to, 4);
    memcpy(&b, from, 4);
    a += b;
    memcpy(to, &a, 4);
    return;
  }
  sc_set_elem(e, to, 0, (float)sc_get_elem(e, to, 0) + (float)sc_get_elem(e, from, 0));
}
