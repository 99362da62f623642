"""Layout of the structures of XLA's foreign-function interface, as handlers read and write them.

Sizes and offsets are in bytes, on machines whose addresses have eight of them. The names are those
of the newest header without `XLA_FFI_`. `test_native_ffi.py` compares the tables with the header of
the installed jaxlib.

Source: the interface's header, `xla/ffi/api/c_api.h`, which comes with jaxlib and promises that the
structures of a major version only ever grow.
"""

WORD_BYTES = 8
"""The size of an address, and of an integer of 64 bits."""

OFFSETS = {
    "Api": {"Error_Destroy": 64, "ThreadPool_Schedule": 136, "ThreadPool_NumThreads": 144},
    "Api_Version": {"major_version": 16, "minor_version": 20},
    "Args": {"args": 32},
    "Buffer": {"data": 24, "dims": 40},
    "CallFrame": {"extension_start": 8, "api": 16, "ctx": 24, "args": 40, "rets": 80},
    "Error_Destroy_Args": {"struct_size": 0, "extension_start": 8, "error": 16},
    "InternalExtension": {"type": 8},
    "Metadata": {"api_version": 8},
    "Metadata_Extension": {"metadata": 24},
    "Rets": {"rets": 32},
    "ThreadPool_NumThreads_Args": {
        **{"struct_size": 0, "extension_start": 8, "ctx": 16, "num_threads": 24},
    },
    "ThreadPool_Schedule_Args": {
        **{"struct_size": 0, "extension_start": 8, "ctx": 16, "task": 24, "data": 32},
    },
}
"""The offset of each field that a handler uses, by structure."""

SIZES = {
    "Error_Destroy_Args": 24,
    "ThreadPool_NumThreads_Args": 32,
    "ThreadPool_Schedule_Args": 40,
}
"""The sizes of the structures that a handler makes; each says its size in its first field."""

METADATA_EXTENSION = 1
"""The type of the extension of a call frame that asks for a handler's version."""


def offset(*path: str) -> int:
    """Return the offset of a field, given as `Structure.field`.

    For a field of a structure that is a part of another one, the path names the part first.
    """
    return sum(OFFSETS[struct][field] for struct, field in (step.split(".") for step in path))
