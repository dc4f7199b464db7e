"""cuDNN's graph API (cuDNN backend API reference) by ctypes, as far as asking which graphs it has a plan for. Nothing of it
needs a GPU: the card is a device-properties JSON. Constants are read from the header beside the library."""
import ctypes
import re


class CudnnError(Exception):
    pass


class Descriptor:
    """A descriptor, finalised where it has attributes, which it keeps alive."""

    def __init__(self, cudnn, kind, attributes=None):
        self.cudnn, self.attributes, self.pointer = cudnn, attributes, ctypes.c_void_p()
        cudnn.call("CreateDescriptor", cudnn.value("BACKEND_" + kind + "_DESCRIPTOR"), ctypes.byref(self.pointer))
        if attributes is None:
            return
        for name, kind_of_value, value in attributes:
            self.set(name, kind_of_value, value)
        cudnn.call("Finalize", self.pointer)

    def __del__(self):
        if self.pointer:
            self.cudnn.library.cudnnBackendDestroyDescriptor(self.pointer)

    def set(self, name, kind, value):
        values = value if isinstance(value, (list, tuple, bytes)) else [value]
        if kind == "CHAR":
            array = ctypes.create_string_buffer(values, len(values))
        elif kind == "BACKEND_DESCRIPTOR":
            array = (ctypes.c_void_p * len(values))(*[one.pointer for one in values])
        else:
            c_type = {"INT64": ctypes.c_int64, "BOOLEAN": ctypes.c_bool, "FLOAT": ctypes.c_float}.get(kind, ctypes.c_int)
            array = (c_type * len(values))(*[self.cudnn.value(one) if isinstance(one, str) else one for one in values])
        self.cudnn.call("SetAttribute", self.pointer, self.cudnn.value("ATTR_" + name), self.cudnn.value("TYPE_" + kind),
                        ctypes.c_int64(len(values)), array)

    def fill(self, name, kind):
        """New descriptors of `kind` that an attribute is copied into, as many as it has."""
        attribute = self.cudnn.value("ATTR_" + name), self.cudnn.value("TYPE_BACKEND_DESCRIPTOR")
        count = ctypes.c_int64()
        self.cudnn.call("GetAttribute", self.pointer, *attribute, ctypes.c_int64(0), ctypes.byref(count), None)
        made = [Descriptor(self.cudnn, kind) for _ in range(count.value)]
        array = (ctypes.c_void_p * len(made))(*[one.pointer for one in made])
        self.cudnn.call("GetAttribute", self.pointer, *attribute, ctypes.c_int64(len(made)), ctypes.byref(count), array)
        return made[:count.value]


class Cudnn:
    def __init__(self, folder):
        """`folder`: with include/ and lib/, as the wheel nvidia-cudnn lays them out."""
        self.library = ctypes.CDLL(str(folder / "lib/libcudnn.so.9"))
        self.library.cudnnGetErrorString.restype = ctypes.c_char_p
        self.library.cudnnGetVersion.restype = ctypes.c_size_t
        header = (folder / "include/cudnn_graph_v9.h").read_text(encoding="utf-8")
        self.values = {name: int(value) for name, value in
                       re.findall(r"^\s*CUDNN_(\w+)(?: CUDNN_DEPRECATED_ENUM)?\s*=\s*(-?\d+)", header, re.MULTILINE)}
        self.uid = 0

    def value(self, name):
        return self.values[name]

    def version(self):
        """ "9.19"."""
        number = self.library.cudnnGetVersion()
        return f"{number // 10000}.{number // 100 % 100}"

    def call(self, function, *arguments):
        status = getattr(self.library, "cudnnBackend" + function)(*arguments)
        if status != 0:
            raise CudnnError(self.library.cudnnGetErrorString(status).decode())

    def device(self, properties):
        """A card: what CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION says of it, bytes."""
        return Descriptor(self, "DEVICEPROP", [("DEVICEPROP_JSON_REPRESENTATION", "CHAR", properties)])

    def tensor(self, shape, dtype, virtual=False):
        """N, C, H, W with the channels innermost; a virtual one is never in memory."""
        n, c, h, w = shape
        self.uid += 1
        return Descriptor(self, "TENSOR", [
            ("TENSOR_DATA_TYPE", "DATA_TYPE", "DATA_" + dtype), ("TENSOR_DIMENSIONS", "INT64", [n, c, h, w]),
            ("TENSOR_STRIDES", "INT64", [c * h * w, 1, c * w, c]), ("TENSOR_UNIQUE_ID", "INT64", self.uid),
            ("TENSOR_BYTE_ALIGNMENT", "INT64", 16), ("TENSOR_IS_VIRTUAL", "BOOLEAN", virtual)])

    def operation(self, kind, prefix, tensors, *attributes):
        """`tensors`: {attribute without its prefix: tensor}."""
        named = [(f"OPERATION_{prefix}_{name}", "BACKEND_DESCRIPTOR", tensor) for name, tensor in tensors.items()]
        return Descriptor(self, "OPERATION_" + kind, named + list(attributes))

    def pointwise(self, mode, **tensors):
        how = Descriptor(self, "POINTWISE", [("POINTWISE_MODE", "POINTWISE_MODE", "POINTWISE_" + mode),
                                             ("POINTWISE_MATH_PREC", "DATA_TYPE", "DATA_FLOAT")])
        return self.operation("POINTWISE", "POINTWISE", {"PW_DESCRIPTOR": how, **tensors})

    def convolution(self, way, padding, **tensors):
        """`way`: FORWARD (X, W, Y), BWD_DATA (DY, W, DX) or BWD_FILTER (X, DY, DW); stride 1."""
        how = Descriptor(self, "CONVOLUTION", [
            ("CONVOLUTION_COMP_TYPE", "DATA_TYPE", "DATA_FLOAT"), ("CONVOLUTION_CONV_MODE", "CONVOLUTION_MODE", 1),
            ("CONVOLUTION_SPATIAL_DIMS", "INT64", 2), ("CONVOLUTION_DILATIONS", "INT64", [1, 1]),
            ("CONVOLUTION_FILTER_STRIDES", "INT64", [1, 1]), ("CONVOLUTION_PRE_PADDINGS", "INT64", [padding] * 2),
            ("CONVOLUTION_POST_PADDINGS", "INT64", [padding] * 2)])
        prefix = "CONVOLUTION_" + way
        return self.operation(prefix.replace("BWD", "BACKWARD"), prefix, {"CONV_DESC": how, **tensors},
                              (f"OPERATION_{prefix}_ALPHA", "FLOAT", 1.0), (f"OPERATION_{prefix}_BETA", "FLOAT", 0.0))

    def has_plan(self, operations, device):
        """Whether an execution plan for a graph of these operations can be made for `device`."""
        graph = Descriptor(self, "OPERATIONGRAPH", [("OPERATIONGRAPH_OPS", "BACKEND_DESCRIPTOR", operations)])
        for mode in ("HEUR_MODE_A", "HEUR_MODE_FALLBACK"):
            heuristics = Descriptor(self, "ENGINEHEUR", [
                ("ENGINEHEUR_OPERATION_GRAPH", "BACKEND_DESCRIPTOR", graph), ("ENGINEHEUR_MODE", "HEUR_MODE", mode),
                ("ENGINEHEUR_DEVICEPROP", "BACKEND_DESCRIPTOR", device)])
            for engine in heuristics.fill("ENGINEHEUR_RESULTS", "ENGINECFG"):
                try:
                    Descriptor(self, "EXECUTION_PLAN", [
                        ("EXECUTION_PLAN_ENGINE_CONFIG", "BACKEND_DESCRIPTOR", engine),
                        ("EXECUTION_PLAN_DEVICEPROP", "BACKEND_DESCRIPTOR", device)])
                    return True
                except CudnnError:  # the next engine may
                    continue
        return False
