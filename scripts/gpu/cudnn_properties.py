#!/usr/bin/env python3
"""Writes what cuDNN says of the first GPU: the JSON by which cuDNN answers, on a machine without that GPU, which graphs it
has a plan for (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).

--check FILE needs no GPU: cuDNN reads such a file and must give the same back.
Exit codes: 0 written or the same, 4 cuDNN refused or gave something else, 7 no cuDNN.
"""

import argparse
import ctypes
import json
import pathlib
import sys

# cudnn_graph_v9.h
DEVICEPROP_DESCRIPTOR, DEVICE_ID, JSON_REPRESENTATION = 38, 2700, 2702
TYPE_INT32, TYPE_CHAR = 23, 24


class Failed(Exception):
    pass


class Cudnn:
    def __init__(self):
        self.library = ctypes.CDLL("libcudnn.so.9", ctypes.RTLD_GLOBAL)
        self.library.cudnnGetErrorString.restype = ctypes.c_char_p
        self.library.cudnnGetVersion.restype = ctypes.c_size_t
        self.version = self.library.cudnnGetVersion()

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise Failed(f"{name}: {self.library.cudnnGetErrorString(status).decode()}")

    def text_of(self, attribute, kind, count, value):
        """The properties that this attribute sets, as text."""
        properties = ctypes.c_void_p()
        self.call("cudnnBackendCreateDescriptor", DEVICEPROP_DESCRIPTOR, ctypes.byref(properties))
        self.call("cudnnBackendSetAttribute", properties, attribute, kind, ctypes.c_int64(count), value)
        self.call("cudnnBackendFinalize", properties)
        size = ctypes.c_int64()
        self.call("cudnnBackendGetAttribute", properties, JSON_REPRESENTATION, TYPE_CHAR, ctypes.c_int64(0),
                  ctypes.byref(size), None)
        text = ctypes.create_string_buffer(size.value + 1)
        self.call("cudnnBackendGetAttribute", properties, JSON_REPRESENTATION, TYPE_CHAR, size, ctypes.byref(size), text)
        self.library.cudnnBackendDestroyDescriptor(properties)
        return text.raw[:size.value].rstrip(b"\0").decode()

    def of_device(self, number):
        return self.text_of(DEVICE_ID, TYPE_INT32, 1, ctypes.byref(ctypes.c_int32(number)))

    def read_back(self, text):
        value = text.encode()
        return self.text_of(JSON_REPRESENTATION, TYPE_CHAR, len(value), ctypes.c_char_p(value))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, help="the file that is written")
    parser.add_argument("--check", type=pathlib.Path, help="a file of an earlier call, on a machine with or without a GPU")
    arguments = parser.parse_args()
    try:
        cudnn = Cudnn()
    except (OSError, AttributeError) as problem:
        print(f"cudnn_properties: {problem}", file=sys.stderr)
        sys.exit(7)
    try:
        if arguments.check:
            known = json.loads(arguments.check.read_text())["properties"]
            if json.loads(cudnn.read_back(json.dumps(known))) != known:
                raise Failed("cuDNN gave other properties back")
        else:
            text = json.dumps({"cudnn_version": cudnn.version, "properties": json.loads(cudnn.of_device(0))}, indent=1)
            arguments.output.write_text(text + "\n")
            print(text)
    except (Failed, ValueError) as problem:
        print(f"cudnn_properties: {problem}", file=sys.stderr)
        sys.exit(4)


if __name__ == "__main__":
    main()
