"""Triton operators of the builtin provider: plain upstream Triton, one module per operator.

Contract of every launch function: contiguous tensors of fewer than 2**31 elements (offsets are 32 bit), no value is
read back and no device is asked, so the same call works on a GPU, in the interpreter and on meta tensors (compile
only). These modules know nothing of caliber, pytest or any vendor.
"""
