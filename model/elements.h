// elements.h - element types of operands and tensors: runtime/data/float.c has the conversions,
// exact for each code.
#ifndef MD_ELEMENTS_H
#define MD_ELEMENTS_H

#include "model.h"

// Values of all codes, by MdElem: 2^16 of the 16-bit types, 2^8 of the 8-bit ones.
extern const float *const md_values[4];
void md_add_element(u32 elem, void *to, const void *from);  // MapElem: *to += *from, rounded to it

#endif
