// float_oracle.h - written by float_oracle.py with NumPy and ml_dtypes; do not edit.
// {all codes decoded, all probes encoded}: FNV-1a over 64 bits, one value a step.
static const u64 oracle[][2] = {
    [EL_F16] = {0xa29fcd307f1d2325, 0x4dd5fa75bbe419c5},
    [EL_BF16] = {0xae864f38855e2325, 0x56dfd365dbf2c555},
    [EL_E4M3] = {0x08993af4628bb725, 0xea6c85c2ef368125},
    [EL_E5M2] = {0x00cee2838e6bb725, 0x76f0cec9e82e107d},
};
