"""Analytic policy gradients: learning through the simulator."""
