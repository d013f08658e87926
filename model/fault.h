// fault.h - what the model found wrong in a launch, for whoever knows the schedule:
// `schedc_model_fault`, which is beside the driver's entry points, gives it. Texts name threads and
// memory by what the machine knows of them, in braces:
//
//   {t:CTA:THREAD}                 a thread
//   {s:CTA:OFFSET}                 a byte of a CTA's dynamic shared memory
//   {b:CTA:OFFSET:GENERATION}      an mbarrier there, and a generation of it, from 0
//   {g:ADDRESS}                    a byte of global memory, in hexadecimal
#ifndef SCHEDC_MODEL_FAULT_H
#define SCHEDC_MODEL_FAULT_H

enum { MODEL_NOTES = 40, MODEL_TEXT = 400 };
typedef struct ModelRemark {
  char file[256];  // as `#line` has it; empty: not known
  unsigned line;
  char text[MODEL_TEXT];
} ModelRemark;
typedef struct ModelFault {
  char function[128];  // the kernel
  char rule[16];       // "M6": README.md lists them
  ModelRemark what;
  unsigned notes;
  ModelRemark note[MODEL_NOTES];
} ModelFault;

// Of the last launch that failed; NULL if none did since it was asked for.
typedef const ModelFault *ModelFaultFunction(void);

#endif
