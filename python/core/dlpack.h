// dlpack.h - the parts of DLPack's binary interface that the extension reads (dmlc/dlpack, versions
// 0.8 to 1.3): tensors as another library hands them over, and the table of functions with which it
// does so without a Python call. Layouts and numbers are the standard's, names are ours.
#ifndef SCHEDC_PYTHON_DLPACK_H
#define SCHEDC_PYTHON_DLPACK_H
#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_INT = 0, DL_FLOAT = 2, DL_BFLOAT = 4, DL_E4M3 = 10, DL_E5M2 = 12 };
enum { DL_READ_ONLY = 1 };

typedef struct DlTensor {
  void *data;
  int32_t device_type, device;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape;
  int64_t *strides;      // in elements; NULL: rows one after the other
  uint64_t byte_offset;  // from data to the first element
} DlTensor;

// What a capsule "dltensor" holds begins with its tensor …
typedef struct DlManaged {
  DlTensor tensor;
} DlManaged;

// … and "dltensor_versioned" holds this.
typedef struct DlVersioned {
  uint32_t major, minor;
  void *owner;
  void (*free)(struct DlVersioned *);
  uint64_t flags;
  DlTensor tensor;
} DlVersioned;

// What the capsule `__dlpack_c_exchange_api__` of a type holds: functions on its objects. They
// return 0, or -1 with a Python exception set; the caller holds the GIL.
typedef struct DlExchange {
  uint32_t major, minor;
  struct DlExchange *older;
  void *allocate, *managed_of_object, *object_of_managed;
  int (*tensor_of_object)(void *object, DlTensor *out);  // borrowed; NULL: not offered
  int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} DlExchange;
#endif
