"""Sparse linear algebra on the degrees of freedom of a tree, with the batch on the last axis.

This folder holds the LDLᵀ factorization of the mass matrix: `frontal` walks over the blocks of the
tree, `unrolled` and `blocked` eliminate a small and a large block. It also holds the assembly of
the constraint Hessian JᵀDJ, sparse and dense, and a general elimination. It imports the sparsity
pattern (`smooth_dynamics.structure`) and the constraint layout, but no force law. Only
`brax.generalized` imports it. Start reading at `frontal`.
"""
