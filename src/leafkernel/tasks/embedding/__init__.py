"""Samples in few dimensions, as a forest sees them."""

from leafkernel.tasks.embedding.leaf_embedding import LeafEmbedding
from leafkernel.tasks.embedding.leaf_pca import LeafPCA

__all__ = ["LeafEmbedding", "LeafPCA"]
