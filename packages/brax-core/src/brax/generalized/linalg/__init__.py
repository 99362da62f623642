"""Sparse linear algebra on the degrees of freedom of a tree, with the batch on the last axis.

This folder holds the LDLᵀ factorization of the mass matrix and of the constraint Hessian M + JᵀDJ.
`frontal` walks over the blocks of the tree. `unrolled` eliminates a block with every operation
written out, `blocked` eliminates it in loops; `MAX_UNROLLED_DOFS` in `smooth_dynamics/structure.py`
decides which. The folder also holds the assembly of JᵀDJ: `unrolled` with few constraints,
`constraint_hessian_sparse` with many, and `constraint_hessian_dense` where the pairs in contact
change. `elimination` solves general systems. The folder imports the sparsity pattern and the
constraint layout, but evaluates no force law. Only `brax.generalized` imports it. Start reading at
`frontal`.
"""
