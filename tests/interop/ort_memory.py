"""What onnxruntime itself asks of memory while it runs a model: through its C API, whose functions the Python
package's shared library exports and whose order is fixed for good (onnxruntime_c_api.h: new ones are appended)."""

import ctypes
import pathlib

import onnxruntime

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
# positions in struct OrtApi
API = {
    "GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "Run": 9, "CreateSessionOptions": 10, "DisableMemPattern": 17,
    "SetSessionLogSeverityLevel": 22, "SetSessionGraphOptimizationLevel": 23, "SetIntraOpNumThreads": 24,
    "CreateTensorWithDataAsOrtValue": 49, "CreateCpuMemoryInfo": 69, "ReleaseStatus": 93, "ReleaseSession": 95, "ReleaseValue": 96,
    "ReleaseSessionOptions": 100, "AddSessionConfigEntry": 130, "CreateAllocator": 131, "ReleaseAllocator": 132,
    "RegisterAllocator": 176, "GetKeyValue": 297, "ReleaseKeyValuePairs": 300, "AllocatorGetStats": 319,
}
API_VERSION = 23  # the first with AllocatorGetStats
ELEMENTS = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
            "uint32": 12, "uint64": 13}
FATAL = 4

ALLOCATE = ctypes.CFUNCTYPE(POINTER, POINTER, SIZE)
FREE = ctypes.CFUNCTYPE(None, POINTER, POINTER)
INFO = ctypes.CFUNCTYPE(POINTER, POINTER)


class OrtAllocator(ctypes.Structure):
    """Of version 17: nothing behind Info is looked at."""
    _fields_ = [("version", ctypes.c_uint32), ("allocate", ALLOCATE), ("free", FREE), ("info", INFO), ("later", POINTER * 8)]


def shared_library():
    """Its path; None where the package has none apart from its Python module."""
    found = sorted((pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))
    return found[0] if found else None


class Runtime:
    """onnxruntime with an allocator that keeps account of what is asked of it, and gives plain memory."""

    def __init__(self):
        library = ctypes.CDLL(str(shared_library()))
        library.OrtGetApiBase.restype = ctypes.POINTER(POINTER * 2)
        get_api = ctypes.CFUNCTYPE(POINTER, ctypes.c_uint32)(library.OrtGetApiBase().contents[0])
        self.table = ctypes.cast(get_api(API_VERSION), ctypes.POINTER(POINTER * (max(API.values()) + 1))).contents
        self.plain = ctypes.CDLL(None)
        self.plain.aligned_alloc.restype, self.plain.aligned_alloc.argtypes = POINTER, [SIZE, SIZE]
        self.plain.free.argtypes = [POINTER]
        self.live, self.now, self.peak, self.asked = {}, 0, 0, []
        self.environment = self.new("CreateEnv", FATAL, b"interop")
        self.cpu = self.new("CreateCpuMemoryInfo", 0, 0)
        self.allocator = OrtAllocator(17, ALLOCATE(self.allocate), FREE(self.free), INFO(lambda _: self.cpu.value))
        self.call("RegisterAllocator", self.environment, ctypes.byref(self.allocator))

    def allocate(self, _, size):
        block = self.plain.aligned_alloc(256, max(size + -size % 256, 256))
        self.live[block] = size
        self.now += size
        self.peak = max(self.peak, self.now)
        self.asked.append(size)
        return block

    def free(self, _, block):
        if block:
            self.now -= self.live.pop(block)
            self.plain.free(block)

    def function(self, name, result=POINTER, *arguments):
        return ctypes.CFUNCTYPE(result, *arguments)(self.table[API[name]])

    def call(self, name, *arguments):
        status = self.function(name)(*arguments)
        if status:
            text = self.function("GetErrorMessage", ctypes.c_char_p, POINTER)(status).decode()
            self.release("Status", POINTER(status))
            raise RuntimeError(f"{name}: {text}")

    def new(self, name, *arguments):
        made = POINTER()
        self.call(name, *arguments, ctypes.byref(made))
        return made

    def release(self, kind, what):
        self.function("Release" + kind, None, POINTER)(what)


class Session:
    """`optimize`: ORT_DISABLE_ALL = 0 to ORT_ENABLE_ALL = 99. `counted`: with the allocator that keeps account rather
    than onnxruntime's arena. `pattern`: from the second run on, what the first one asked for as one buffer."""

    def __init__(self, runtime, path, optimize=0, counted=True, pattern=False):
        self.runtime, call = runtime, runtime.call
        options = runtime.new("CreateSessionOptions")
        call("SetSessionGraphOptimizationLevel", options, optimize)
        call("SetIntraOpNumThreads", options, 1)
        call("SetSessionLogSeverityLevel", options, FATAL)
        if not pattern:
            call("DisableMemPattern", options)
        if counted:
            call("AddSessionConfigEntry", options, b"session.use_env_allocators", b"1")
        try:
            self.handle = runtime.new("CreateSession", runtime.environment, str(path).encode(), options)
        finally:
            runtime.release("SessionOptions", options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.runtime.release("Session", self.handle)

    def run(self, inputs, outputs):
        """The most bytes asked for at once since the run began, and each request. Inputs are the caller's."""
        runtime, values = self.runtime, []
        for array in inputs.values():
            shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
            values.append(runtime.new("CreateTensorWithDataAsOrtValue", runtime.cpu, POINTER(array.ctypes.data), SIZE(array.nbytes),
                                      shape, SIZE(array.ndim), ELEMENTS[str(array.dtype)]))
        text = [(ctypes.c_char_p * len(names))(*[name.encode() for name in names]) for names in (list(inputs), outputs)]
        given, made = (POINTER * len(values))(*values), (POINTER * len(outputs))()
        runtime.asked, runtime.peak, before = [], runtime.now, runtime.now
        try:
            runtime.call("Run", self.handle, None, text[0], given, SIZE(len(values)), text[1], SIZE(len(outputs)), made)
            return runtime.peak - before, runtime.asked
        finally:
            for value in [*given, *made]:
                if value:
                    runtime.release("Value", POINTER(value))

    def arena(self):
        """Bytes in use at most and bytes held, weights included: the arena's own count."""
        runtime = self.runtime
        allocator = runtime.new("CreateAllocator", self.handle, runtime.cpu)
        pairs = runtime.new("AllocatorGetStats", allocator)
        value = runtime.function("GetKeyValue", ctypes.c_char_p, POINTER, ctypes.c_char_p)
        found = [int(value(pairs, key)) for key in (b"MaxInUse", b"TotalAllocated")]
        runtime.release("KeyValuePairs", pairs)
        runtime.release("Allocator", allocator)
        return found
