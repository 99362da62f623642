"""The messages of `config.proto`, made at their first use, with any version of protobuf.

The code that `protoc` generates works with only two major versions of the library, so the schema is
read here. The supported grammar is what `config.proto` needs: messages, fields, and at most one
`oneof` in each.
"""

import functools
import re
from importlib import resources
from typing import Any

from brax.errors import BraxError

SCALARS = {"double": 1, "int32": 5, "bool": 8, "string": 9}
"""Numbers of the scalar types, from descriptor.proto."""

_MESSAGE_TYPE = 11
_OPTIONAL, _REPEATED = 1, 3
_STATEMENT = re.compile(
    r"message (?P<message>\w+) {|oneof (?P<oneof>\w+) {|(?P<end>})"
    r"|(?P<repeated>repeated )?(?P<type>\w+) (?P<name>\w+) = (?P<number>\d+);"
)


@functools.cache
def messages() -> dict[str, Any]:
    """Return the message classes by name.

    Raises:
        BraxError: if protobuf is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise BraxError(
            "models in Brax's text form need protobuf: pip install 'brax-io[text]'"
        ) from None
    file = descriptor_pb2.FileDescriptorProto(
        name="brax/io/text/config.proto", package="brax", syntax="proto3"
    )
    _read(resources.files("brax.io.text").joinpath("config.proto").read_text("utf-8"), file)
    # A pool of its own: the default one rejects a second file with the same messages.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindFileByName(file.name).message_types_by_name
    return {name: message_factory.GetMessageClass(kind) for name, kind in found.items()}


def _read(schema: str, file: Any) -> None:
    """Add the messages of a schema to its descriptor."""
    in_oneof = False
    for found in _STATEMENT.finditer(re.sub("//.*", "", schema)):
        if found["message"]:
            message = file.message_type.add(name=found["message"])
        elif found["oneof"]:
            message.oneof_decl.add(name=found["oneof"])
            in_oneof = True
        elif found["end"]:
            in_oneof = False
        else:
            field = message.field.add(name=found["name"], number=int(found["number"]))
            field.label = _REPEATED if found["repeated"] else _OPTIONAL
            field.type = SCALARS.get(found["type"], _MESSAGE_TYPE)
            if field.type == _MESSAGE_TYPE:
                field.type_name = f".brax.{found['type']}"
            if in_oneof:
                field.oneof_index = 0
