"""Embed samples in few dimensions with proximities."""

from leafkernel.tasks.embedding.leaf_embedding import LeafEmbedding
from leafkernel.tasks.embedding.leaf_pca import LeafPCA

__all__ = ["LeafEmbedding", "LeafPCA"]
