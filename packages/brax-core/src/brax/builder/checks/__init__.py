"""Checks of a description, one module a kind of element.

A check takes elements as they were described and yields one sentence for each problem. This folder
changes nothing and makes no arrays. Only `brax.builder` imports it. Start reading at `model`.
"""
