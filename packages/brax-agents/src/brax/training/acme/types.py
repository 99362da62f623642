"""Names of nested arrays, under the path that users import."""

from typing import Any

Nest = NestedArray = NestedSpec = NestedTensor = Any
